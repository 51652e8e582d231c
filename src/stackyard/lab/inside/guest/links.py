"""Links that programs of the machine need in the guest's /etc."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

__all__ = ["alternatives"]


def alternatives(found: Mapping[str, str]) -> None:
    """Make /etc/alternatives as the machine has it, whose programs are links into it."""
    os.makedirs("/etc/alternatives", exist_ok=True)
    for name, target in found.items():
        if "/" not in name and target.startswith("/usr/"):
            with contextlib.suppress(FileExistsError):
                os.symlink(target, f"/etc/alternatives/{name}")
