"""The guests of a state: the one reader of them, from its content or from the index of all states.

A guest whose creation failed (tainted), or which was replaced and still has to go (deposed), exists on the
cluster and belongs to its state like any other: no one else may take its id or remove it. But it is none to
rely on: an inventory does not name it. Who reads guests says which of the two is asked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.render.references import guest_kind, vm_id_in
from stackyard.state.inside import EncryptedStateError, read_instances
from stackyard.state.refusals import StateDeletedError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from stackyard.state.document import Holding
    from stackyard.state.inside import Instance
    from stackyard.state.service import StateService

__all__ = [
    "StateGuest",
    "guests_of",
    "guests_of_state",
    "is_guest_type",
    "list_indexed_vm_ids",
    "read_guests",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateGuest:
    """A guest as a state has it.

    Attributes:
        address: The address of its resource; that of a deposed one says so.
        kind: `vm` or `container`.
        vm_id: Its id; none where the engine has not learned it.
        node: The node that the state names.
        is_reliable: Whether it was wholly created and is still the one that its resource represents.
        attributes: Everything that the state says of it, secrets in clear.
    """

    address: str
    kind: str
    vm_id: int | None
    node: str
    is_reliable: bool = True
    attributes: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def tells_addresses(self) -> bool:
        """Whether its resource has the addresses that it is reached by; VMs of bpg's framework have not."""
        return "vm_id" in self.attributes

    @property
    def should_run(self) -> bool:
        """Whether the state says that it runs. A VM without the attribute `started` is nobody's to start."""
        runs = self.attributes.get("started", self.tells_addresses) is not False
        return runs and not self.attributes.get("template")


def is_guest_type(name: str) -> bool:
    """Return whether resources of a type are guests, the older names of the provider included."""
    return bool(guest_kind(name))


def guests_of(instances: Iterable[Instance]) -> Iterator[StateGuest]:
    """Yield the guests among the resources of a state, those that cannot be relied on too."""
    for one in instances:
        if one.mode == "managed" and is_guest_type(one.type):
            yield StateGuest(
                address=one.address,
                kind=guest_kind(one.type),
                vm_id=vm_id_in(one.attributes),
                node=str(one.attributes.get("node_name") or ""),
                is_reliable=not one.is_tainted and not one.is_deposed,
                attributes=one.attributes,
            )


def read_guests(data: bytes) -> tuple[StateGuest, ...]:
    """Return the guests of a state.

    Raises:
        BodyRefusedError: It is none.
        EncryptedStateError: The engine encrypted it.
    """
    document = parse_json(data, LARGE)
    if "encrypted_data" in document:
        raise EncryptedStateError("The guests of an encrypted state cannot be read.")
    return tuple(guests_of(read_instances(document).values()))


def guests_of_state(states: StateService, name: str) -> tuple[StateGuest, ...]:
    """Return the guests of the current content of a state; none where it has no content.

    Raises:
        EncryptedStateError: The engine encrypted it.
        StoreError: The store cannot say.
    """
    try:
        content = states.contents.read(name)
    except StateDeletedError:
        return ()
    return () if content is None else read_guests(content.body.data)


def list_indexed_vm_ids(held: Iterable[Holding], nodes: Collection[str] | None = None) -> set[int]:
    """Return the ids of the guests that the index has of a state, those that cannot be relied on too.

    Args:
        held: What the index has of it.
        nodes: Only guests that are on these nodes; None for all.
    """
    return {
        int(identity)
        for kind, node, identity in held
        if is_guest_type(kind) and identity.isdecimal() and (nodes is None or node in nodes)
    }
