"""`reboot`, `poweroff`, `shutdown`: the lab restarts or stops the guest."""

from __future__ import annotations

import os
import sys

from . import wire

__all__ = ["run"]


def run(name: str, words: list[str]) -> int:
    """Ask the lab for it."""
    if name in ("init", "telinit"):
        name = {"0": "poweroff", "6": "reboot"}.get(words[0] if words else "", "")
        if not name:
            return 0
    how = "reboot" if name == "reboot" else "poweroff"
    if name == "shutdown":
        if "-c" in words:
            return 0
        how = "reboot" if "-r" in words or "--reboot" in words else "poweroff"
        if "-k" in words:
            return 0
    if os.geteuid() != 0:
        sys.stderr.write("Failed to set wall message, ignoring: Interactive authentication required.\n")
        sys.stderr.write(
            f"Failed to {how.replace('poweroff', 'power off')} system via logind:"
            " Interactive authentication required.\n"
        )
        return 1
    wire.ask({"do": "lab", "ask": {"what": "power", "how": how}})
    return 0
