"""Links that programs of the machine need in the guest's /etc."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["alternatives", "python_modules"]

_SITE = "/run/lab/lib/guest/site"


def alternatives(found: Mapping[str, str]) -> None:
    """Make /etc/alternatives as the machine has it, whose programs are links into it."""
    os.makedirs("/etc/alternatives", exist_ok=True)
    for name, target in found.items():
        if "/" not in name and target.startswith("/usr/"):
            with contextlib.suppress(FileExistsError):
                os.symlink(target, f"/etc/alternatives/{name}")


def python_modules() -> None:
    """Let the guest's Python find the lab's python3-apt before any other."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for kind in ("dist-packages", "site-packages"):
        folder = f"/usr/local/lib/{version}/{kind}"
        with contextlib.suppress(OSError):
            os.makedirs(folder, exist_ok=True)
            for name in ("apt", "apt_pkg.py", "aptsources"):
                if not os.path.lexists(f"{folder}/{name}"):
                    os.symlink(f"{_SITE}/{name}", f"{folder}/{name}")
