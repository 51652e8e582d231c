"""The object understood: every guest with all of its fields, wherever it was written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.sources.deployment import defaults
from stackyard.sources.deployment.generators import generate
from stackyard.sources.deployment.scope import Scope
from stackyard.sources.deployment.splunk import SPLUNK_KEY, splunk_entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stackyard.sources.deployment.generators import Generated
    from stackyard.sources.deployment.text import Path

__all__ = ["Guest", "ParsedDeployment", "affinity_groups", "parse_deployment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """One guest.

    Attributes:
        key: Its key, which is also its key in the state.
        is_container: Whether it is a container.
        entry: What is written of it.
        fields: Every field, defaults included.
        path: Where it is written.
        octet: The host number that its generator gives it.
        is_generated: Whether a generator represents it.
    """

    key: str
    is_container: bool
    entry: Mapping[str, Any]
    fields: Mapping[str, Any]
    path: Path
    octet: int | None = None
    is_generated: bool = False

    @property
    def name(self) -> str:
        """What it is called."""
        return str(self.fields["hostname" if self.is_container else "name"])

    @property
    def node(self) -> str:
        """Where it runs."""
        return str(self.fields["node_name"])

    @property
    def vm_id(self) -> int:
        """Its id."""
        return int(self.fields["vm_id"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedDeployment:
    """An object with its guests.

    Attributes:
        scope: What it says once for all.
        guests: Containers as written, generated ones, then virtual machines; keys may still collide.
    """

    scope: Scope
    guests: Sequence[Guest] = field(repr=False)

    def find(self, key: str) -> Guest | None:
        """Return a guest by its key."""
        return next((guest for guest in self.guests if guest.key == key), None)


def parse_deployment(data: Mapping[str, Any]) -> ParsedDeployment:
    """Return an object with all of its guests completed.

    Args:
        data: The object without comments; its shape is valid.
    """
    scope = Scope(data)
    return ParsedDeployment(scope=scope, guests=tuple(_guests(scope)))


def _guests(scope: Scope) -> Iterator[Guest]:
    for key, entry in scope.get_map("containers").items():
        fields = defaults.complete(defaults.CONTAINER, scope, key, entry)
        yield Guest(key=key, is_container=True, entry=entry, fields=fields, path=("containers", key))
    for made in generate(scope):
        yield _make_generated_guest(scope, made)
    for key, entry in scope.get_map("vms").items():
        fields = defaults.complete(defaults.VM, scope, key, entry)
        yield Guest(key=key, is_container=False, entry=entry, fields=fields, path=("vms", key))
    splunk = splunk_entry(scope)
    if splunk is not None:
        yield Guest(
            key=SPLUNK_KEY,
            is_container=False,
            entry=splunk,
            fields=defaults.complete(defaults.VM, scope, SPLUNK_KEY, splunk),
            path=("splunk_vm_id",),
            is_generated=True,
        )


def _make_generated_guest(scope: Scope, made: Generated) -> Guest:
    return Guest(
        key=made.key,
        is_container=True,
        entry=made.entry,
        fields=defaults.complete(defaults.CONTAINER, scope, made.key, made.entry),
        path=made.path,
        octet=made.octet,
        is_generated=True,
    )


def affinity_groups(guests: Iterable[Guest]) -> dict[str, list[Guest]]:
    """Return the guests under high availability that are to be kept apart, by the name of their group."""
    groups: dict[str, list[Guest]] = {}
    for guest in guests:
        if guest.fields["ha"] and guest.fields["ha_affinity_group"]:
            groups.setdefault(str(guest.fields["ha_affinity_group"]), []).append(guest)
    return groups
