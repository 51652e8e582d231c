"""Make `fixtures/data.tar.xz` and `fixtures/data.json` with the program of this commit.

python -m tests.compatibility.make_data, as any user; OpenTofu is that of STACKYARD_TOFU or of PATH

The data is for later commits: made once, it is kept. It has to be made again only where something is added to
it, by the oldest commit that can. Its runs are those of a machine of another name (`unshare` of util-linux),
so that a lock in it is nowhere taken for one of this machine.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.compatibility.kept_data import (
    ANSWERS,
    ARCHIVE,
    LAB,
    READS,
    WHERE,
    Kept,
    pack,
    without_places,
)
from tests.support.cli import PROGRAM, fresh

MACHINE = "recording.stackyard.invalid"
PATIENCE_S = 60.0
ENVS = {
    "shop": """\
node: lab
posture: local
pools:
  shop: {comment: the shop}
vms:
  - {name: web, vmid: 500, preset: vm-xsmall, image: debian-12, mac: "BC:24:11:00:05:00", pool: shop}
  - {name: dns, type: ct, vmid: 501, image: debian-13-ct, cores: 1, memory: 512, disk: 4}
""",
    "cut": """\
node: lab
posture: local
vms:
  - {name: mail, vmid: 510, preset: vm-xsmall, image: debian-12, mac: "BC:24:11:00:05:10"}
  - {name: proxy, type: ct, vmid: 511, image: debian-13-ct, cores: 1, memory: 512, disk: 4}
""",
    "later": """\
node: lab
posture: local
vms:
  - {name: queue, type: ct, vmid: 520, image: debian-13-ct, cores: 1, memory: 512, disk: 4}
""",
}
MANIFEST = """\
schema_version: 2
name: m
nodes:
  - {name: one, type: vm, vmid: 600, image: debian-12, cores: 1, memory: 512, disk: 4}
settings: {verify_ssh: false}
"""


def make(folder: Path, engine: Path) -> None:
    """Make everything in an empty folder, and pack it."""
    kept = Kept(folder, engine, program=fresh)
    (folder / "home").mkdir()
    kept.start_lab(*WHERE, "--nodes", "pve1")
    kept.stop_lab()
    _make_lasting(folder / "lab" / "certificate")
    kept.start_lab(*WHERE)
    try:
        _fill(kept)
        _kill_an_apply(kept)
        answers = {
            "versions": kept.versions(),
            "reads": {line: without_places(kept.json(line)) for line in READS},
            "manifest": kept.json("manifest status m -H lab"),
            "lab": kept.identity(),
            "export": kept.export(),
        }
    finally:
        kept.stop_lab()
    # What is made again when it is missing, and has paths of this machine in it.
    for cache in (folder / "home" / ".cache", *kept.site.glob(".stackyard/work/*/.terraform")):
        shutil.rmtree(cache)
    pack(folder, ["site", "home", "lab", "later.plan"])
    ANSWERS.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")


def _make_lasting(folder: Path) -> None:
    """Sign the certificate of the lab again for a hundred years: one that expires is replaced by the lab."""
    pem = (folder / "server.pem").read_bytes()
    key_pem = pem[: pem.index(b"-----BEGIN CERTIFICATE-----")]
    key = serialization.load_pem_private_key(key_pem, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    old = x509.load_pem_x509_certificate(pem)
    builder = x509.CertificateBuilder(
        issuer_name=old.issuer,
        subject_name=old.subject,
        public_key=key.public_key(),
        serial_number=old.serial_number,
        not_valid_before=old.not_valid_before_utc,
        not_valid_after=old.not_valid_before_utc + datetime.timedelta(days=36_500),
        extensions=list(old.extensions),
    )
    lasting = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    (folder / "server.pem").write_bytes(key_pem + lasting)
    (folder / "server.crt").write_bytes(lasting)


def _fill(kept: Kept) -> None:
    """Make the site and its guests: runs that end well, two versions of a state, a saved plan, a snapshot."""
    kept.run(f"init site --lab {LAB}", cwd=kept.folder)
    for name, text in ENVS.items():
        (kept.site / "envs" / f"{name}.yaml").write_text(text)
    (kept.site / "manifests" / "m.yaml").write_text(MANIFEST)
    kept.run("apply shop --no-verify")
    env = kept.site / "envs" / "shop.yaml"
    env.write_text(env.read_text().replace("memory: 512", "memory: 768"))
    kept.run("apply shop --no-verify")
    kept.run("create -M m -H lab")
    kept.run("plan later --out ../later.plan")
    kept.run(f"lab snapshot save before-the-cut --name {LAB}")


def _kill_an_apply(kept: Kept) -> None:
    """Kill an apply when its guests exist and their state is not stored: the last creation is unanswered."""
    kept.run(f"lab faults add delay when=after method=POST path='/nodes/*/qemu' seconds=600 --name {LAB}")
    program = subprocess.Popen(
        [*PROGRAM, "apply", "cut", "--no-verify"],
        cwd=kept.site,
        env={**os.environ, **kept.environment},
        stdin=subprocess.DEVNULL,
    )
    _wait_until(lambda: {510, 511} <= {vm_id for vm_id, _, _ in kept.guests()}, "the guests are created")
    engines = list(_children_of(program.pid))
    program.send_signal(signal.SIGKILL)
    program.wait()
    # Without the provider and the state, which were served by what was killed, the engine ends by itself.
    _wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in engines), "the engine has ended")
    kept.run(f"lab faults clear --name {LAB}")
    assert kept.pending(), "the killed run left no journal"


def _children_of(pid: int) -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                yield int(path.parent.name)


def _wait_until(is_true: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_true():
        if time.monotonic() > until:
            raise TimeoutError(f"It took more than {PATIENCE_S:g} s until {what}.")
        time.sleep(0.1)


def main() -> None:
    """Begin again as a process of another machine, then make the data."""
    engine = os.environ.get("STACKYARD_TOFU") or shutil.which("tofu")
    if not engine:
        sys.exit("No OpenTofu: name one in STACKYARD_TOFU.")
    if socket.gethostname() != MACHINE:
        again = [sys.executable, "-m", "tests.compatibility.make_data"]
        script = f'echo {MACHINE} > /proc/sys/kernel/hostname && exec "$@"'
        os.execvp("unshare", ["unshare", "--map-root-user", "--uts", "sh", "-c", script, "sh", *again])
    with tempfile.TemporaryDirectory(prefix="stackyard-data-") as folder:
        make(Path(folder), Path(engine))
    sys.stdout.write(f"{ARCHIVE}: {ARCHIVE.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
