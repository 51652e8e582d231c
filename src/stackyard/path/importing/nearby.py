"""State files near an import that may have the same guests: warned of, because a guest has one owner."""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import SMALL
from stackyard.base.errors import StackyardError
from stackyard.path.importing.other_states import read_other_state

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from stackyard.path.importing.cluster import ClusterListing
    from stackyard.path.importing.other_states import OtherGuest, OtherState

__all__ = ["NearbyState", "describe_nearby", "find_nearby"]

_STATE = "terraform.tfstate"


@dataclass(frozen=True, slots=True, kw_only=True)
class NearbyState:
    """A state near an import.

    Attributes:
        path: The state file, or the folder whose state is in a backend.
        guests: The guests that should be imported, as it has them.
        backend: The type of the backend, where the state is not in a file.
    """

    path: Path
    guests: tuple[OtherGuest, ...] = ()
    backend: str = ""


def find_nearby(
    folders: Iterable[Path], chosen: Sequence[Mapping[str, Any]], listed: ClusterListing
) -> tuple[NearbyState, ...]:
    """Return the states in folders that have guests of a choice, or that nobody here can look into.

    Args:
        folders: Where to look; not below them.
        chosen: The guests that should be imported.
        listed: What the cluster has.
    """
    found = []
    for folder in dict.fromkeys(folder.resolve() for folder in folders):
        for state in _states(folder):
            guests = tuple(state.match(chosen, listed.nodes))
            if guests:
                found.append(NearbyState(path=state.path, guests=guests))
        kind, _ = _read_backend(folder)
        if kind not in ("", "local"):
            found.append(NearbyState(path=folder, backend=kind))
    return tuple(found)


def describe_nearby(nearby: NearbyState, target: str) -> str:
    """Return the warning of a state, with the command to type."""
    if nearby.backend:
        return (
            f"{nearby.path} keeps an OpenTofu state in a backend ({nearby.backend}), which stackyard has not"
            " looked into. If it has these guests, two states would manage them: run `tofu state pull >"
            f" old.tfstate` there, and `stackyard import {target} --from-state old.tfstate`."
        )
    names = ", ".join(f"{one.name or one.address} ({one.vm_id})" for one in nearby.guests)
    return (
        f"{nearby.path} has guests of this import too: {names}. Two states must not manage the same guest:"
        f" `stackyard import {target} --from-state {shlex.quote(str(nearby.path))}` takes them out of it."
    )


def _states(folder: Path) -> Iterator[OtherState]:
    paths = [folder / _STATE, *sorted(folder.glob(f"{_STATE}.d/*/{_STATE}"))]
    kind, config = _read_backend(folder)
    if kind == "local" and isinstance(config.get("path"), str):
        paths.append(folder / config["path"])
    for path in dict.fromkeys(paths):
        # A file that nobody named and that is no state has nothing to say here.
        with contextlib.suppress(StackyardError):
            if path.is_file():
                yield read_other_state(path)


def _read_backend(folder: Path) -> tuple[str, Mapping[str, Any]]:
    """Return the backend that `init` noted in a folder, and its settings."""
    try:
        found = parse_json((folder / ".terraform" / _STATE).read_bytes(), SMALL)
    except (OSError, JsonError):
        return "", {}
    backend = found.get("backend") if isinstance(found, dict) else None
    if not isinstance(backend, dict) or not isinstance(backend.get("type"), str):
        return "", {}
    config = backend.get("config")
    return backend["type"], config if isinstance(config, dict) else {}
