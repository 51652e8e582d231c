"""What reading a SOPS file costs beside the `sops` program, or, without it, beside bare AES-GCM.

`sops` is named by STACKYARD_TEST_SOPS, or found on PATH. It is a process of its own, as to whoever calls it;
ours is a call in a process that runs already.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from bench.figure import Figure
from stackyard.secrets import Keyring, read_secrets
from stackyard.secrets.create import create_sops_file
from stackyard.secrets.protected_file import open_file
from stackyard.secrets.sops.age import new_identity, unwrap
from stackyard.secrets.sops.file import OpenedSops

__all__ = ["measure"]

VALUES = 500
ROUNDS = 7


def measure() -> list[Figure]:
    """Return what is promised of reading secrets."""
    public, secret = new_identity()
    env = {**os.environ, "SOPS_AGE_KEY": secret}
    with tempfile.TemporaryDirectory(prefix="stackyard-bench-") as folder:
        path = Path(folder) / "secrets.yaml"
        lines = [f"  key{number}: value of key {number}, some forty characters" for number in range(VALUES)]
        create_sops_file(path, ("all:\n" + "\n".join(lines) + "\n").encode(), [public])
        ours = _best(lambda: read_secrets(path, Keyring(env=env)))
        sops = os.environ.get("STACKYARD_TEST_SOPS") or shutil.which("sops")
        if sops is not None:
            floor = _best(
                lambda: subprocess.run(
                    [sops, "decrypt", str(path)], env=env, stdout=subprocess.DEVNULL, check=True
                )
            )
            return [_figure(ours, "the sops process", floor, aim_ratio=1.0)]
        return [_figure(ours, "bare AES-GCM of the same values", _bare(path, env), aim_ratio=150.0)]


def _figure(ours: float, floor_name: str, floor: float, *, aim_ratio: float) -> Figure:
    return Figure(
        name=f"reading a SOPS file of {VALUES} values, with their places",
        measured_s=ours,
        floor_name=floor_name,
        floor_s=floor,
        aim_ratio=aim_ratio,
    )


def _best(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken)


def _bare(path: Path, env: dict[str, str]) -> float:
    """Return how long it takes to decrypt all values and do nothing else."""
    opened = open_file(path, Keyring(env=env))
    if not isinstance(opened, OpenedSops):
        raise TypeError("the file is not one of SOPS")
    key = unwrap(opened.metadata.groups[0].age, Keyring(env=env))
    if key is None:
        raise TypeError("the key does not fit")
    gcm = AESGCM(key)
    pattern = r"(key\d+): ENC\[AES256_GCM,data:([^,]+),iv:([^,]+),tag:([^,]+),"
    found = re.findall(pattern, path.read_text())
    values = [
        (b64decode(iv), b64decode(data) + b64decode(tag), f"all:{name}:".encode())
        for name, data, iv, tag in found
    ]
    return _best(lambda: [gcm.decrypt(*value) for value in values])
