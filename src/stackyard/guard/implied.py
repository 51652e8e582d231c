"""What a plan asks of the cluster: which guests it creates or changes, which files it writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.desired import DeclaredFile
from stackyard.engine.changes import Action, Changes
from stackyard.guard.declared import Declared
from stackyard.guard.subjects import FILES, KINDS, is_guest, name_of, short_kind, vm_id_of
from stackyard.render.references import address_of, address_of_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.desired import Desired, Guest
    from stackyard.desired.files import AnyFile, File
    from stackyard.engine.changes import Change

__all__ = ["ATTRIBUTES", "ImpliedCalls", "Overcommit", "derive_implied_calls"]

# The attributes of the provider by which guests that are there may change.
ATTRIBUTES = frozenset(
    "acpi agent audio_device bios boot_order cdrom cpu description disk hook_script_file_id hostpci hotplug "
    "initialization machine memory mount_point name network_device network_interface on_boot protection "
    "scsi_hardware serial_device start_on_boot started startup tags usb vga device_passthrough "
    "features".split()
)
_NOT_DONE = (Action.NOTHING, Action.READ, Action.FORGET)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overcommit:
    """How many times what there is may be promised; no limit for None."""

    memory: float | None = None
    storage: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpliedCalls:
    """What is going to be done, as far as Proxmox is asked for it.

    Attributes:
        desired: The model, with the snippets that are made for its guests.
        created: Keys of guests that are created.
        changed: Attributes of the provider that change, by the key of the guest.
        files: Keys of files that are written or downloaded.
        objects: Type, name and place (a node, a zone) of everything else that is created, changed or removed.
        destroyed: The ids of guests that are removed, each with its name.
        deleted: Datastore, name and label of files that are removed.
        had: The values of guests that change or are replaced, before that, by the key of the guest.
        overcommit: How much more than there is may be promised.
        changes: What the plan does with each resource.
        declared: What the layers below declare.
        beside: What is done with tokens and their roles beside the engine.
        used_tokens: The tokens that nodes of the site use, each with these nodes.
        unchanged: The addresses of what stays as it is: what it names is not looked at again.
        leaving: Type (without prefix), node and name of objects that the target had, and that go.
    """

    desired: Desired
    created: frozenset[str] = frozenset()
    changed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    files: frozenset[str] = frozenset()
    objects: frozenset[tuple[str, str, str]] = frozenset()
    destroyed: Mapping[int, str] = field(default_factory=dict)
    deleted: frozenset[tuple[str, str, str]] = frozenset()
    had: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    overcommit: Overcommit = Overcommit()
    changes: Changes = field(default_factory=lambda: Changes(planned=()))
    declared: Declared = field(default_factory=Declared)
    beside: Changes = field(default_factory=lambda: Changes(planned=()))
    used_tokens: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unchanged: frozenset[str] = frozenset()
    leaving: frozenset[tuple[str, str, str]] = frozenset()

    @classmethod
    def of_existing(cls, desired: Desired) -> ImpliedCalls:
        """Return what it takes to manage guests that are there: to change any attribute of them."""
        return cls(desired=desired, changed={guest.key: ATTRIBUTES for guest in desired.guests})

    @property
    def new_guests(self) -> Iterator[Guest]:
        """The guests that are created."""
        return (guest for guest in self.desired.guests if guest.key in self.created)

    @property
    def touched_guests(self) -> Iterator[tuple[Guest, frozenset[str] | None]]:
        """The guests that are created or changed; with the attributes that change, None for all of them."""
        for guest in self.desired.guests:
            if guest.key in self.created:
                yield guest, None
            elif guest.key in self.changed:
                yield guest, self.changed[guest.key]

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is asked of the cluster."""
        done = (self.created, self.changed, self.files, self.objects, self.destroyed, self.deleted)
        return not any(done)

    def file(self, used: File) -> AnyFile | None:
        """Return a file of the model that a guest uses; None for a volume of the cluster."""
        if not isinstance(used, DeclaredFile):
            return None
        return next((file for file in self.desired.files if file.key == used.file), None)


def derive_implied_calls(
    desired: Desired,
    changes: Changes,
    overcommit: Overcommit | None = None,
    *,
    addresses: Mapping[str, str] | None = None,
) -> ImpliedCalls:
    """Return what a plan asks of the cluster.

    Args:
        desired: The model, with the snippets that are made for its guests.
        changes: What the plan does.
        overcommit: How much more than there is may be promised.
        addresses: By the key of a guest or file, the address of its resource, where the code was not rendered
            from the model.
    """
    by_address = {change.address: change for change in changes.planned if change.imported_as is None}
    own = addresses or {}
    created: set[str] = set()
    changed: dict[str, frozenset[str]] = {}
    had: dict[str, Mapping[str, Any]] = {}
    for guest in desired.guests:
        change = by_address.get(own.get(guest.key) or address_of(guest))
        if change is None:
            continue
        if change.action in (Action.CREATE, Action.REPLACE):
            created.add(guest.key)
        elif change.action is Action.UPDATE:
            changed[guest.key] = frozenset(str(one.path[0]) for one in change.differences)
        if change.before is not None:
            had[guest.key] = change.before
    return ImpliedCalls(
        desired=desired,
        created=frozenset(created),
        changed=changed,
        files=frozenset(_list_written(desired, by_address, own)),
        objects=frozenset(_objects(changes)),
        destroyed=dict(_list_destroyed(changes)),
        deleted=frozenset(_list_deleted(changes)),
        had=had,
        overcommit=overcommit or Overcommit(),
        changes=changes,
    )


def _list_written(
    desired: Desired, by_address: Mapping[str, Change], own: Mapping[str, str]
) -> Iterator[str]:
    """Yield the keys of files that are written or downloaded."""
    for file in desired.files:
        change = by_address.get(own.get(file.key) or address_of_file(file))
        if change is not None and change.action in (Action.CREATE, Action.REPLACE):
            yield file.key


def _objects(changes: Changes) -> Iterator[tuple[str, str, str]]:
    for change in changes.planned:
        kind = short_kind(change)
        if change.action in _NOT_DONE or kind not in KINDS or is_guest(change) or kind in FILES:
            continue
        values = change.after or change.before or {}
        yield kind, name_of(change), str(values.get("node_name") or values.get("zone") or "")


def _list_destroyed(changes: Changes) -> Iterator[tuple[int, str]]:
    for change in changes.planned:
        vm_id = vm_id_of(change)
        if is_guest(change) and change.destroys and vm_id is not None:
            yield vm_id, name_of(change)


def _list_deleted(changes: Changes) -> Iterator[tuple[str, str, str]]:
    for change in changes.planned:
        if short_kind(change) in FILES and change.destroys:
            yield str((change.before or {}).get("datastore_id", "")), name_of(change), change.name
