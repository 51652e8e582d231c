"""A site, the user's files and a lab, as an earlier commit left them on the disk.

`fixtures/data.tar.xz` has these folders and files, `fixtures/data.json` what commands said about them then:

- `site/`: the site with its `.stackyard` folder (states, journal, run records, work folders),
- `home/`: HOME with the age key and the key of saved plans,
- `lab/`: the data folder of the lab,
- `later.plan`: a saved plan of `env:later`, which was never applied.

Only the program's command line and these files are used here: it works whatever the packages are called.
"""

from __future__ import annotations

import contextlib
import json
import lzma
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.compatibility.golden import FIXTURES
from tests.support.cli import Ended, Program, stackyard
from tests.support.forking import fork_program
from tests.support.site_store import pending

__all__ = [
    "ADDRESS",
    "ANSWERS",
    "ARCHIVE",
    "LAB",
    "PORT",
    "READS",
    "SSH_PORT",
    "WHERE",
    "Kept",
    "find_tofu",
    "pack",
    "unpack",
    "without_places",
]

ARCHIVE = FIXTURES / "data.tar.xz"
ANSWERS = FIXTURES / "data.json"
LAB = "kept"
# Where the lab of the recording listened. No other program uses this address of the loopback network.
ADDRESS = "127.87.65.43"
PORT = 18506
SSH_PORT = 18522
WHERE = ("--bind", ADDRESS, "--port", str(PORT), "--ssh-port", str(SSH_PORT))
# What reads the files without a lab; the answers must not change, so that ages and places are not in them.
READS = (
    "state list",
    "state versions env/shop/lab",
    "state show env/shop/lab",
    "state show env/shop/lab --version 1",
    "state diff env/shop/lab",
    "state audit env/shop/lab",
    "state audit env/cut/lab",
    "state versions manifest/m/lab",
    "output shop",
)


@dataclass(frozen=True)
class Kept:
    """The unpacked data, and the program run in its site.

    Attributes:
        folder: Where it was unpacked.
        engine: The OpenTofu to use.
        program: Runs the program.
    """

    folder: Path
    engine: Path
    program: Program = stackyard

    @property
    def site(self) -> Path:
        return self.folder / "site"

    @property
    def environment(self) -> dict[str, str]:
        """What makes the kept HOME that of the program."""
        home = self.folder / "home"
        return {
            "HOME": str(home),
            "XDG_CACHE_HOME": str(home / ".cache"),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_DATA_HOME": str(home / ".local/share"),
            "XDG_STATE_HOME": str(home / ".local/state"),
            "XDG_RUNTIME_DIR": str(home / ".run"),
            "STACKYARD_TOFU": str(self.engine),
        }

    def run(self, line: str, *, status: int | None = 0, cwd: Path | None = None) -> Ended:
        """Run a command line in the site; check how it ends, unless that is left open."""
        ended = self.program(*shlex.split(line), cwd=cwd or self.site, env=self.environment)
        if status is not None:
            assert ended.status == status, f"{line}\n{ended.stdout}\n{ended.stderr}"
        return ended

    def json(self, line: str, *, status: int | None = 0, cwd: Path | None = None) -> dict[str, Any]:
        """Run a command line with `--json` and return its answer."""
        return self.run(f"{line} --json", status=status, cwd=cwd).document

    def error(self, line: str, *, status: int) -> dict[str, Any]:
        """Run a command line that ends with an error; return that."""
        found: dict[str, Any] = self.json(line, status=status)["error"]
        return found

    def start_lab(self, *options: str) -> dict[str, Any]:
        """Start the lab from its data folder in the background; return how to reach it."""
        return self.json(shlex.join(_lab_line(options)), cwd=self.folder)

    @contextlib.contextmanager
    def lab(self, *options: str) -> Iterator[dict[str, Any]]:
        """Run the lab for the length of a block, in a process that is forked; give how to reach it."""
        output, end = os.pipe()
        with os.fdopen(output) as lines:
            with open(end, "wb") as written, open(os.devnull, "rb") as nothing:
                streams = (nothing.fileno(), written.fileno(), 2)
                line = (*_lab_line(options), "--foreground", "--json")
                env = {**os.environ, **self.environment}
                forked = fork_program(line, streams=streams, cwd=self.folder, env=env)
            try:
                yield json.loads(lines.readline())
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(forked.pid, signal.SIGTERM)
                forked.wait()

    def stop_lab(self) -> None:
        """Stop the lab, where it runs."""
        self.run("lab down --all", cwd=self.folder)

    def point_to(self, ready: dict[str, Any]) -> None:
        """Write the address of the lab into the file of the site's node; everything else in it stays."""
        file = self.site / "nodes" / "lab.yaml"
        text = file.read_text()
        for field, value in (("api_endpoint", ready["url"]), ("ssh_port", ready["ssh_port"])):
            text, count = re.subn(rf"(?m)^{field}: .*$", f"{field}: {value}", text)
            assert count == 1, f"{file} has {field} {count} times"
        file.write_text(text)

    def identity(self) -> dict[str, Any]:
        """Return what clients of the lab know it by, wherever it listens."""
        status = self.json(f"lab status --name {LAB}")
        return {name: status[name] for name in ("fingerprint", "username", "nodes")}

    def guests(self) -> list[tuple[int, str, str]]:
        """Return id, name and power state of every guest that the lab has, in the order of their ids."""
        return [
            (guest["vmid"], guest["config"].get("name") or guest["config"]["hostname"], guest["status"])
            for guest in self.export()["guests"]
        ]

    def export(self) -> dict[str, Any]:
        """Return everything that the lab has."""
        seed: dict[str, Any] = self.json(f"lab export --name {LAB}")["seed"]
        return seed

    def changing_calls(self) -> list[str]:
        """Return the calls of the API that change something, since the lab was started."""
        calls = self.json(f"lab journal --name {LAB}")["calls"]
        return [f"{call['method']} {call['path']}" for call in calls if call["method"] in _CHANGING]

    def pending(self) -> list[str]:
        """Return the entries of the journal: what runs began to create and no state has yet."""
        return pending(self.site / ".stackyard")

    def versions(self) -> dict[str, str]:
        """Return which stackyard and which OpenTofu there are."""
        tools = {tool["name"]: tool["version"] for tool in self.json("tools list")["tools"]}
        return {"stackyard": self.run("--version").stdout.strip(), "tofu": tools["tofu"]}


def _lab_line(options: Sequence[str]) -> tuple[str, ...]:
    return ("lab", "up", "--name", LAB, "--guests", "recorded", "--data", "lab", *options)


_CHANGING = ("POST", "PUT", "DELETE")


def unpack(folder: Path) -> None:
    """Unpack the archive with the system's tar; only the decompression needs no program."""
    _tar(["-x", "-p", "--no-same-owner", "-f", "-", "-C", str(folder)], lzma.decompress(ARCHIVE.read_bytes()))


def pack(folder: Path, names: Sequence[str]) -> None:
    """Make the archive of some files and folders."""
    fixed = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]
    data = _tar(["-c", *fixed, "-f", "-", "-C", str(folder), *names], b"")
    ARCHIVE.write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))


def _tar(arguments: Sequence[str], data: bytes) -> bytes:
    return subprocess.run(["tar", *arguments], input=data, stdout=subprocess.PIPE, check=True).stdout


def without_places(document: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without the folder of the store."""
    return {name: value for name, value in document.items() if name != "store"}


def find_tofu() -> Path | None:
    """Return the OpenTofu to test with, where there is one; tests/conftest.py names the developer's own."""
    named = os.environ.get("STACKYARD_TEST_TOFU") or shutil.which("tofu")
    return Path(named) if named else None
