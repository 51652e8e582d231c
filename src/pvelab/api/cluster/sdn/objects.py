"""Reading SDN objects: as written, as in force, or the one with the changes to the other."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.sdn.applied import PARTS, list_pending, read_applied
from pvelab.api.cluster.sdn.locks import change_sdn
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.world.sections import SectionFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pvelab.server.call import Call
    from pvelab.world.sections import Kind
    from pvelab.world.store import Document, Store

__all__ = ["CONTROLLERS", "NOT_SETTINGS", "SUBNETS", "VNETS", "ZONES", "Part", "settings"]

# Parameters of changes that no object keeps.
NOT_SETTINGS = frozenset(("digest", "delete", "lock-token", "type"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One kind of objects of the SDN configuration.

    Attributes:
        name: Its name among the parts of the running configuration.
        key: The parameter that has the id of an object.
        missing: What is said of an id that does not exist.
    """

    name: str
    key: str
    missing: str = "sdn '{}' does not exist"

    def file(self, store: Store) -> SectionFile:
        """Return the written objects."""
        return SectionFile(store, PARTS[self.name])

    def select(self, call: Call) -> tuple[Mapping[str, Document], str | None]:
        """Return the objects that the call asks for, and their digest if they are the written ones."""
        file = self.file(call.store)
        if call.params.get("pending"):
            return list_pending(file.all(), read_applied(call.store, self.name)), None
        if call.params.get("running"):
            return read_applied(call.store, self.name), None
        return file.all(), file.digest

    def list_objects(self, call: Call) -> list[dict[str, Any]]:
        """Return all objects that the call asks for, as clients see them, in the order of their ids."""
        found, digest = self.select(call)
        return [{**found[ident], self.key: ident, "digest": digest} for ident in sorted(found)]

    def visible(self, call: Call) -> list[dict[str, Any]]:
        """Return the objects that the call asks for and its caller may see, of one type if it names one."""
        wanted = call.params.get("type")
        return [
            one
            for one in self.list_objects(call)
            if call.may(f"/sdn/{self.name}/{one[self.key]}", "SDN.Audit", "SDN.Allocate", any_of=True)
            and wanted in (None, one["type"])
        ]

    @contextlib.contextmanager
    def creating(self, call: Call, kinds: Mapping[str, Kind]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give the id and the checked section of a new object; the block writes it.

        Raises:
            PveError: There is one of this id, an option cannot be set, or the block failed.
        """
        ident = call.params[self.key]
        section = kinds[call.params["type"]].validate(settings(call, self.key), create=True)
        call.world.cluster.require_quorum()
        with change_sdn(call, f"create sdn {self.key} object failed"):
            if self.file(call.store).get(ident) is not None:
                raise PveError(f"sdn {self.key} object ID '{ident}' already defined")
            yield ident, section

    @contextlib.contextmanager
    def updating(
        self, call: Call, kinds: Mapping[str, Kind]
    ) -> Iterator[tuple[str, Document, dict[str, Any]]]:
        """Give the id of an object, the object, and it with the changes; the block writes that.

        Raises:
            PveError: There is no such object, an option cannot be changed, or the block failed.
        """
        ident = call.params[self.key]
        with change_sdn(call, f"update sdn {self.key} object failed"):
            self.file(call.store).check_digest(call.params.get("digest"))
            old = self.require(call.store, ident)
            yield ident, old, self.merge_changes(call, kinds[old["type"]], old)

    def read(self, call: Call, ident: str) -> dict[str, Any]:
        """Return one object that the call asks for, as clients see it.

        Raises:
            PveError: There is no such object.
        """
        found, digest = self.select(call)
        if ident not in found:
            raise PveError(self.missing.format(ident))
        return {**found[ident], self.key: ident, "digest": digest}

    def require(self, store: Store, ident: str) -> Document:
        """Return a written object.

        Raises:
            PveError: There is no such object.
        """
        found = self.file(store).get(ident)
        if found is None:
            raise PveError(self.missing.format(ident))
        return found

    def merge_changes(self, call: Call, kind: Kind, section: Mapping[str, Any]) -> dict[str, Any]:
        """Return an object with the changes that the call asks for.

        Raises:
            PveError: An option cannot be set or removed.
        """
        given = kind.validate(settings(call, self.key), create=False)
        kept = kind.without(section, split_list(call.params.get("delete", "")), given)
        return {**kept, **given}


ZONES = Part(name="zones", key="zone")
VNETS = Part(name="vnets", key="vnet", missing="sdn vnet '{}' does not exist")
SUBNETS = Part(name="subnets", key="subnet", missing="sdn subnet '{}' does not exist")
CONTROLLERS = Part(name="controllers", key="controller")


def settings(call: Call, *but: str) -> dict[str, Any]:
    """Return the parameters that an object keeps, lists of nodes in order."""
    given = {key: value for key, value in call.params.items() if key not in NOT_SETTINGS and key not in but}
    for key in ("nodes", "exitnodes"):
        if key in given:
            given[key] = ",".join(sorted(set(split_list(given[key]))))
    return given
