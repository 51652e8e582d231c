"""Handing guests over from a state file of another configuration: locked, checked, then removed from it.

The files stay locked from before the import writes anything until the guests have left them. If the run is
killed after the import and before that, two states have the guests: the same import again finds them in its
own state, and removes them from the file.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base import files
from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.errors import Location, StackyardError
from stackyard.path.importing.other_states import (
    OtherStateError,
    parse_other_state,
    read_other_state,
    resource_of,
)
from stackyard.path.known_state import forget_instances
from stackyard.state.moving.base import describe_lock
from stackyard.state.moving.file_location import FileLocation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from stackyard.path.importing.cluster import ClusterListing
    from stackyard.path.importing.other_states import OtherGuest, OtherState

__all__ = [
    "Handover",
    "HandoverError",
    "Released",
    "StateHolder",
    "hold_states",
    "list_handovers",
    "removed_blocks",
]

OTHER_NAME = Kind(
    code="E-IMPORT-STATE-NAME",
    summary="A guest has another name in the state file",
    remedy="Check that the state is for this cluster; `tofu apply -refresh-only` there updates the name.",
)


_NO_GUEST = (
    "Name the state of the configuration that manages the guests now. If an earlier import took them out of"
    " this one, there is nothing left to do."
)


class HandoverError(StackyardError):
    """Guests were imported, and could not be removed from the state file that had them."""

    code = "E-IMPORT-TWO-OWNERS"
    summary = "Two states have the same guests"
    default_remedy = (
        "Run the same import again: it removes them from the file. Until then, do not apply the other"
        " configuration."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """The guests that leave a state file."""

    state: OtherState
    guests: tuple[OtherGuest, ...]

    @property
    def vm_ids(self) -> frozenset[int]:
        """The ids of the guests."""
        return frozenset(guest.vm_id for guest in self.guests)

    def only(self, vm_ids: Collection[int]) -> Handover:
        """Return the same with no other guests than these."""
        kept = tuple(guest for guest in self.guests if guest.vm_id in vm_ids)
        return Handover(state=self.state, guests=kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """A state file that guests left, or would leave.

    Attributes:
        handover: The state before, and the guests.
        serial: The serial of the state without them.
        backup: The copy of the state before; None where nothing was written.
    """

    handover: Handover
    serial: int
    backup: Path | None = None


def list_handovers(paths: Sequence[Path], listed: ClusterListing) -> tuple[Handover, ...]:
    """Read state files, and return each with the guests that a cluster has.

    Raises:
        FileError: A file cannot be read.
        OtherStateError: A file is no state, or has no guest of the cluster.
        InvalidInputError: A guest has another name on the cluster, so that it may be another guest.
    """
    found = Diagnostics()
    handovers = []
    names = {int(row["vmid"]): str(row.get("name") or "") for row in listed.guests}
    # One file under two names is locked and written once.
    for path in dict.fromkeys(path.resolve() for path in paths):
        state = read_other_state(path)
        guests = tuple(state.match(listed.guests, listed.nodes))
        if not guests:
            raise _make_no_guest_error(state, listed.nodes)
        for guest in guests:
            if guest.name and names[guest.vm_id] not in ("", guest.name):
                found.add(
                    OTHER_NAME,
                    f"{guest.address} is {guest.name} ({guest.vm_id} on {guest.node}) in {path}; the guest"
                    f" {guest.vm_id} of the cluster is {names[guest.vm_id]}.",
                )
        handovers.append(Handover(state=state, guests=guests))
    found.raise_errors("The choice of state files")
    return tuple(handovers)


def _make_no_guest_error(state: OtherState, nodes: Collection[str]) -> OtherStateError:
    if not state.guests:
        return OtherStateError(
            f"{state.path} has no guests.", where=Location(str(state.path)), remedy=_NO_GUEST
        )
    there = ", ".join(f"{one.name or one.address} ({one.vm_id} on {one.node})" for one in state.guests[:5])
    return OtherStateError(
        f"{state.path} has no guest of this cluster ({', '.join(sorted(nodes))}). It has {there}.",
        where=Location(str(state.path)),
    )


@contextlib.contextmanager
def hold_states(handovers: Sequence[Handover]) -> Iterator[StateHolder]:
    """Lock state files as the engine does, for the length of the block.

    Raises:
        BackendLockedError: An engine holds one of them.
        OtherStateError: One was changed since it was read; nothing was written.
    """
    with contextlib.ExitStack() as held:
        places = {}
        for handover in handovers:
            place = FileLocation(handover.state.path)
            info = describe_lock(place, "stackyard import", "An import takes guests out of this state.")
            place.lock(info)
            held.callback(place.unlock, info)
            if place.read() != handover.state.data:
                raise OtherStateError(
                    f"{handover.state.path} was changed while the import was prepared.",
                    where=Location(str(handover.state.path)),
                    remedy="Run the import again; nothing was changed.",
                )
            places[handover.state.path] = place
        yield StateHolder(places)


class StateHolder:
    """State files that are locked by this process."""

    def __init__(self, places: Mapping[Path, FileLocation]) -> None:
        self._places = places

    def release(self, handover: Handover) -> Released:
        """Remove the guests from the state file; a copy of the state before stays beside it.

        Raises:
            HandoverError: The file could not be written; it has the guests as before.
        """
        state = handover.state
        addresses = frozenset(one for guest in handover.guests for one in (guest.address, *guest.parts))
        try:
            data = forget_instances(state.data, addresses)
            after = parse_other_state(state.path, data)
            # As `tofu state rm` calls it, and ignored by the usual .gitignore.
            backup = state.path.with_name(f"{state.path.name}.{time.time_ns() // 1000}.backup")
            files.replace_file(backup, state.data)
            self._places[state.path].replace(data)
        except StackyardError as err:
            names = ", ".join(sorted(guest.name or guest.address for guest in handover.guests))
            raise HandoverError(f"{names}: imported, and still in {state.path}. {err.detail}") from err
        return Released(handover=handover, serial=after.serial, backup=backup)


def removed_blocks(handover: Handover) -> list[str]:
    """Return lines of configuration with which an engine forgets guests and leaves them running.

    A block names a whole resource. Where only some of its instances leave, a command names those.
    """
    lines = []
    taken: dict[str, list[Any]] = {}
    for guest in handover.guests:
        for address in (guest.address, *guest.parts):
            taken.setdefault(resource_of(address), []).append(address)
    for resource, addresses in sorted(taken.items()):
        if len(addresses) == handover.state.instances.get(resource) and "[" not in resource:
            lines += ["removed {", f"  from = {resource}", "  lifecycle {", "    destroy = false", "  }", "}"]
        else:
            lines += [f"# tofu state rm '{address}'" for address in addresses]
    return lines
