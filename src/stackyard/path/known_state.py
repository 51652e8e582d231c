"""What the state of a target has, read under the lock of the run, and edits that engines have no word for.

An edit is staged: the engines of the run plan with it, and it is stored once the guard has agreed.
"""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import parse_json_pairs
from stackyard.base.documents.limits import LARGE
from stackyard.path.named_objects import find_same
from stackyard.render.legacy_names import find_renamed
from stackyard.state import StateDeletedError
from stackyard.state.guests import guests_of, is_guest_type
from stackyard.state.inside import EncryptedStateError, address_in, read_view

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from stackyard.desired import Desired
    from stackyard.state import StateService
    from stackyard.state.inside import Instance

__all__ = [
    "KnownState",
    "StateEdit",
    "forget_instances",
    "has_resources",
    "join_rows",
    "known_state_of",
    "read_known_state",
]

# A whole number with as many fits into 64 bits.
_SURE_DIGITS = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEdit:
    """What to change in a state.

    Attributes:
        complete: Addresses of resources whose creation failed, which count as created from now on.
        forget: Addresses of resources that are taken out; what they represent stays as it is.
        nodes: Addresses of guests that run on another node than the state says, and which.
    """

    complete: frozenset[str] = frozenset()
    forget: frozenset[str] = frozenset()
    nodes: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to change."""
        return not (self.complete or self.forget or self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownState:
    """The resources of a state.

    Attributes:
        instances: Every managed resource by its address; replaced ones that still have to go are left out.
        renamed: Addresses that an earlier version wrote, with the present ones, by which `instances` goes.
        is_readable: Whether it could be looked into: an engine may have encrypted it.
        is_joined: Whether it is more than what is stored: with objects of other states that are taken over.
    """

    instances: Mapping[str, Instance] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    is_readable: bool = True
    is_joined: bool = False
    _data: bytes = field(default=b"", repr=False)

    @property
    def guests(self) -> Mapping[str, Instance]:
        """The guests by address."""
        return {
            address: instance for address, instance in self.instances.items() if is_guest_type(instance.type)
        }

    @property
    def vm_ids(self) -> frozenset[int]:
        """The ids of the guests."""
        found = (one.vm_id for one in guests_of(self.instances.values()))
        return frozenset(vm_id for vm_id in found if vm_id is not None)

    def list_tainted(self) -> Collection[str]:
        """Return the addresses of resources whose creation failed."""
        return [address for address, one in self.instances.items() if one.is_tainted]

    def edit(self, edit: StateEdit) -> bytes | None:
        """Return the state with an edit, as the version after this one; None where nothing changes."""
        is_same = edit.is_empty and not self.renamed and not self.is_joined
        if is_same or not self._data:
            return None
        return _edit_rows(self._data, _Editor(edit, self.renamed))


def forget_instances(data: bytes, addresses: frozenset[str]) -> bytes:
    """Return a state without some of its instances, as the version after this one, laid out as engines do."""
    return _edit_rows(data, _Editor(StateEdit(forget=addresses), {}), indent=2) + b"\n"


def join_rows(
    data: bytes | None,
    others: Sequence[bytes],
    wanted: Callable[[bytes, Mapping[str, Any]], bool],
    *,
    lineage: str,
) -> bytes:
    """Return a state with rows of others, as the same version.

    Args:
        data: The state; None where there is none yet.
        others: The other states.
        wanted: Whether a row of one of them is taken.
        lineage: What a new state is called among all of its name.
    """
    numbers = _ExactNumbers()
    rows = [row for other in others for row in numbers.read(other)["resources"] if wanted(other, row)]
    document = numbers.read(others[0] if data is None else data)
    if data is None:
        document = {**document, "serial": 0, "lineage": lineage, "outputs": {}, "resources": []}
    return numbers.write({**document, "resources": [*document["resources"], *rows]})


def _edit_rows(data: bytes, editor: _Editor, *, indent: int | None = None) -> bytes:
    numbers = _ExactNumbers()
    document = numbers.read(data)
    rows = [row for row in map(editor.row, document["resources"]) if row["instances"]]
    return numbers.write({**document, "serial": document["serial"] + 1, "resources": rows}, indent=indent)


class _ExactNumbers:
    """Keeps numbers as they are written: no reader has all of them without rounding."""

    def __init__(self) -> None:
        # Stands before the text of a number while it is read; nothing else in a state has it.
        self._mark = secrets.token_hex(16)

    def keep(self, text: str) -> str:
        return f"{self._mark}{text}"

    def parse_integer(self, text: str) -> int | str:
        return int(text) if len(text) <= _SURE_DIGITS else self.keep(text)

    def read(self, data: bytes) -> dict[str, Any]:
        document: dict[str, Any] = parse_json_pairs(
            data.decode(), limits=LARGE, parse_number=(self.parse_integer, self.keep)
        )
        return document

    def write(self, document: Mapping[str, Any], *, indent: int | None = None) -> bytes:
        separators = (",", ":") if indent is None else (",", ": ")
        text = json.dumps(document, ensure_ascii=False, separators=separators, indent=indent)
        return re.sub(rf'"{self._mark}([^"]+)"', r"\1", text).encode()


class _Editor:
    """Applies an edit to the rows of a state."""

    def __init__(self, edit: StateEdit, renamed: Mapping[str, str]) -> None:
        self._edit = edit
        self._renamed = renamed

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        if row.get("mode") != "managed":
            return row
        row = self._rename(row)
        kept = []
        for instance in row["instances"]:
            address = address_in(row, instance)
            if address not in self._edit.forget:
                kept.append(self._instance(address, instance))
        return {**row, "instances": kept}

    def _rename(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return a row with its present name, and with the present addresses of what it depends on."""
        address = self._renamed.get(f"{row['type']}.{row['name']}") if "module" not in row else None
        instances = [
            {**one, "dependencies": [self._renamed.get(name, name) for name in one["dependencies"]]}
            if one.get("dependencies")
            else one
            for one in row["instances"]
        ]
        name = row["name"] if address is None else address.partition(".")[2]
        return {**row, "name": name, "instances": instances}

    def _instance(self, address: str, instance: dict[str, Any]) -> dict[str, Any]:
        if address in self._edit.complete:
            instance = {key: value for key, value in instance.items() if key != "status"}
        node = self._edit.nodes.get(address)
        if node is not None:
            instance = {**instance, "attributes": {**instance["attributes"], "node_name": node}}
        return instance


def has_resources(states: StateService, name: str) -> bool:
    """Return whether a state holds anything, replaced resources too; one that cannot be looked into does.

    Raises:
        StoreError: The store cannot say.
    """
    try:
        content = states.contents.read(name)
        view = None if content is None else read_view(content.body.data)
    except StateDeletedError:
        return False
    except EncryptedStateError:
        return True
    return view is not None and any(one.mode == "managed" for one in view.instances.values())


def read_known_state(states: StateService, name: str, desired: Desired | None = None) -> KnownState:
    """Read a state.

    Args:
        states: The states.
        name: The name of the state.
        desired: The model of the target. Resources of it go by their present addresses, also where an
            earlier version wrote others into the state.

    Raises:
        StoreError: The store cannot say.
    """
    try:
        content = states.contents.read(name)
    except StateDeletedError:
        return KnownState()
    return known_state_of(None if content is None else content.body.data, desired)


def known_state_of(
    data: bytes | None, desired: Desired | None = None, *, is_joined: bool = False
) -> KnownState:
    """Return what a state has.

    Args:
        data: The state as the engine wrote it; None where there is none yet.
        desired: The model of the target, as for `read_known_state`.
        is_joined: Whether it is more than what is stored.
    """
    if data is None:
        return KnownState()
    try:
        view = read_view(data)
    except EncryptedStateError:
        return KnownState(is_readable=False)
    managed = [one for one in view.instances.values() if one.mode == "managed" and not one.is_deposed]
    renamed = {} if desired is None else find_renamed(desired, view.instances.keys())
    if desired is not None:
        renamed |= find_same(desired, {one.address: one for one in managed if one.address not in renamed})
    present = (
        replace(one, address=renamed[one.address]) if one.address in renamed else one for one in managed
    )
    instances = {one.address: one for one in present}
    return KnownState(instances=instances, renamed=renamed, is_joined=is_joined, _data=data)
