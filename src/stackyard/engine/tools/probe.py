"""Asking one program for its version. Whatever the program does, the answer is a value."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError
from stackyard.engine.tools import memory
from stackyard.engine.tools.catalogue import CATALOGUE, Tool, VersionOutput
from stackyard.engine.tools.versions import read

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PROBE_TIMEOUT_S", "Health", "Probe", "probe"]

# Ansible takes over a second to say its version on an idle machine.
PROBE_TIMEOUT_S = 10.0
_QUOTED_CHARACTERS = 400


class Health(enum.StrEnum):
    """Whether a program can be used."""

    OK = "ok"
    TOO_OLD = "too-old"
    BROKEN = "broken"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What one program said of itself.

    Attributes:
        path: The program.
        health: Whether it can be used.
        said: The tool that it really is and its version, when it answered.
        reason: Why it cannot be used, empty when it can.
    """

    path: Path
    health: Health
    said: VersionOutput | None = None
    reason: str = ""


async def probe(
    path: Path, tool: Tool, *, timeout_s: float = PROBE_TIMEOUT_S, from_memory: bool = True
) -> Probe:
    """Run a program to learn its version; one that fails, babbles or hangs is broken, which is no error.

    Args:
        path: The program.
        tool: What it should be.
        timeout_s: How long it may take to answer.
        from_memory: Whether what the same file said before will do.
    """
    said = memory.recall(path) if from_memory else None
    if said is None:
        try:
            said = await tool.ask(path, timeout_s)
        except StackyardError as err:
            return Probe(path=path, health=Health.BROKEN, reason=_shorten(err.detail))
        if from_memory:
            memory.remember(path, said)
    # A file called tofu can be Terraform: what counts is the oldest version of what it is.
    minimum = next((known.minimum for known in CATALOGUE if known.name == said.product), None)
    version = read(said.version)
    if minimum is not None and version is not None and version < minimum:
        reason = f"{said.product} {said.version} is older than {minimum}, the oldest that works."
        return Probe(path=path, health=Health.TOO_OLD, said=said, reason=reason)
    return Probe(path=path, health=Health.OK, said=said)


def _shorten(detail: str) -> str:
    """Return the start of an error's text: what failed, and the first of what the program said."""
    return detail if len(detail) <= _QUOTED_CHARACTERS else f"{detail[:_QUOTED_CHARACTERS].rstrip()}..."
