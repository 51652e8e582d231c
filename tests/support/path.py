"""A site made for a lab, and the program run in it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.cli import Ended, Program, stackyard
from tests.support.engine import real_engine

from stackyard import lab
from stackyard.engine.version import Flavour
from stackyard.sources.site.new_site import LabAccess, start_site

__all__ = ["SMALL_GUEST", "Yard", "lasting_home", "make_yard", "mirror_of", "provider_settings"]


# The quickest guest to create: a container, which needs no SSH to the node.
SMALL_GUEST: dict[str, Any] = {
    "name": "web",
    "vmid": 101,
    "type": "ct",
    "image": "debian-13-ct",
    "cores": 1,
    "memory": 128,
    "disk": 1,
}


@dataclass(kw_only=True)
class Yard:
    """A site, the lab that it is for, the engine and provider that the program uses, and how it begins."""

    folder: Path
    running: lab.Running
    env: dict[str, str]
    program: Program = stackyard

    def with_env(self, **env: str) -> Yard:
        """Return the same with more in the environment of the program."""
        return replace(self, env={**self.env, **env})

    def run(self, *arguments: str, status: int | None = 0) -> Ended:
        """Run the program in the site; check how it ends, unless that is left open."""
        ended = self.program(*arguments, cwd=self.folder, env=self.env)
        if status is not None:
            assert ended.status == status, f"{arguments}\n{ended.stdout}\n{ended.stderr}"
        return ended

    def json(self, *arguments: str, status: int | None = 0) -> dict[str, Any]:
        """Run the program and return its one object."""
        return self.run(*arguments, "--json", status=status).document

    def codes(self, *arguments: str) -> list[str]:
        """Run the program, which refuses; return the codes of all findings."""
        error = self.json(*arguments, status=1)["error"]
        assert error["code"] == "E-GUARD-REFUSED", error
        return [found["code"] for found in error["diagnostics"]]

    def write_env(self, name: str, guests: list[dict[str, Any]], **fields: Any) -> None:
        """Write an env again."""
        document = {"node": "lab", "posture": "local", **fields, "vms": guests}
        (self.folder / "envs" / f"{name}.yaml").write_text(yaml.safe_dump(document, sort_keys=False))

    def guests(self) -> dict[int, dict[str, Any]]:
        """Return the guests of the lab as it keeps them."""
        world = self.running.world
        return self.running.on_loop(
            lambda: {int(key): dict(guest) for key, guest in world.guests.all().items()}
        )


@contextlib.contextmanager
def lasting_home(folder: Path) -> Iterator[dict[str, str]]:
    """Have a home for all tests of a module, which is none of theirs; give the environment that says so."""
    names = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
    env = {name: str(folder / name.lower()) for name in names}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in env.items():
            Path(value).mkdir()
            patch.setenv(name, value)
        yield env


def make_yard(running: lab.Running, folder: Path, **env: str) -> Yard:
    """Make a site for a lab."""
    ready = running.document()
    access = LabAccess(
        url=running.url,
        fingerprint=running.fingerprint,
        api_token=running.api_token,
        password=running.password,
        nodes=tuple(running.nodes),
        ssh_ports=tuple(ready["ssh_ports"].get(node, 22) for node in running.nodes),
    )
    start_site(folder, access)
    return Yard(folder=folder, running=running, env=env)


def provider_settings(provider: str, folder: Path, flavour: Flavour = Flavour.TOFU) -> dict[str, str]:
    """Return the environment for the built-in provider or for bpg's, which the test is skipped without."""
    engine = real_engine(flavour)
    env = {"STACKYARD_TOFU": str(engine.path), "STACKYARD_PROVIDER": provider}
    if provider == "bpg":
        named = os.environ.get("STACKYARD_TEST_BPG")
        if not named:
            pytest.skip("no bpg/proxmox provider: name its binary in STACKYARD_TEST_BPG")
        env["STACKYARD_TOFU_CONFIG"] = str(mirror_of(Path(named).absolute(), engine.path, folder / "bpg"))
    return env


def mirror_of(binary: Path, engine: Path, folder: Path) -> Path:
    """Lay out the real provider so that an engine installs it; return the engine's settings for that."""
    asking = folder / "asking"
    asking.mkdir(parents=True)
    source = 'terraform {\n required_providers { proxmox = { source = "bpg/proxmox" } }\n}\n'
    (asking / "main.tf").write_text(source)
    said = subprocess.run(
        [str(engine), "providers"], cwd=asking, capture_output=True, text=True, check=True
    ).stdout
    found = re.search(r"provider\[([^/]+)/bpg/proxmox\]", said)
    assert found, said
    place = folder / "mirror" / found[1] / "bpg" / "proxmox" / "0.111.1" / "linux_amd64"
    place.mkdir(parents=True)
    (place / "terraform-provider-proxmox_v0.111.1").symlink_to(binary)
    settings = folder / "mirror.tfrc"
    settings.write_text(f'provider_installation {{\n  filesystem_mirror {{ path = "{folder}/mirror" }}\n}}\n')
    return settings
