"""Proxmox's own commands in a guest that is a Proxmox node: the lab inside it answers them."""

from __future__ import annotations

import sys

from .wire import ask

__all__ = ["run"]


def run(name: str, arguments: list[str]) -> int:
    """Have the lab run a command, and print what it said."""
    answer = ask({"do": "lab", "ask": {"what": "node", "argv": [name, *arguments]}}).get("answer")
    if not isinstance(answer, dict):
        sys.stderr.write(f"{name}: the node does not answer\n")
        return 255
    sys.stdout.write(str(answer.get("out", "")))
    sys.stderr.write(str(answer.get("err", "")))
    return int(answer.get("status", 255))
