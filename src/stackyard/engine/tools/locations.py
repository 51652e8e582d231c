"""The places where a tool can be: configured by the user, on PATH, or our managed copy."""

from __future__ import annotations

import enum
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from stackyard.engine.tools import managed
from stackyard.engine.tools.catalogue import TOFU, Tool

__all__ = [
    "TOFU_VARIABLE",
    "FoundBy",
    "SearchLocation",
    "find_configured_location",
    "list_locations",
    "on_path",
]

TOFU_VARIABLE = "STACKYARD_TOFU"


class FoundBy(enum.StrEnum):
    """How a program was found."""

    CONFIGURED = "configured"
    PATH = "PATH"
    MANAGED = "managed copy"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLocation:
    """One place to look at.

    Attributes:
        where: What sort of place.
        label: The place in words, as an error or a list shows it.
        tool: What is looked for there.
        path: The program, when there is one.
    """

    where: FoundBy
    label: str
    tool: Tool
    path: Path | None


def find_configured_location(given: Path | None = None) -> SearchLocation | None:
    """Return the engine that the user chose: the one given, else the one in `STACKYARD_TOFU`.

    A bare name is looked up on PATH first, as a shell would.
    """
    text = os.environ.get(TOFU_VARIABLE, "") if given is None else str(given)
    if not text:
        return None
    label = f"{TOFU_VARIABLE}={text}" if given is None else f"the configured path {text}"
    path = (None if os.sep in text else on_path(text)) or Path(os.path.expanduser(text)).absolute()
    # Not `Path.exists`, which raises for what it may not look at, or for a name that no file can have.
    found = path if os.path.exists(path) else None
    return SearchLocation(where=FoundBy.CONFIGURED, label=label, tool=TOFU, path=found)


def list_locations(tool: Tool) -> tuple[SearchLocation, ...]:
    """Return the places of a tool in the order of preference, each with what is there."""
    label = f"{' or '.join(dict.fromkeys(tool.programs))} on PATH"
    first = SearchLocation(where=FoundBy.PATH, label=label, tool=tool, path=on_path(*tool.programs))
    return (first, *_list_managed_locations(tool)) if tool.is_managed else (first,)


def on_path(*names: str) -> Path | None:
    """Return the first of these programs that is on PATH."""
    found = next((path for name in names if (path := shutil.which(name))), None)
    # PATH may hold relative folders, and we run programs from elsewhere.
    return Path(found).absolute() if found else None


def _list_managed_locations(tool: Tool) -> tuple[SearchLocation, ...]:
    paths: tuple[Path | None, ...] = managed.copies(tool.name) or (None,)
    return tuple(
        SearchLocation(
            where=FoundBy.MANAGED,
            label=f"the managed copy {path or f'below {managed.tool_folder(tool.name)}'}",
            tool=tool,
            path=path,
        )
        for path in paths
    )
