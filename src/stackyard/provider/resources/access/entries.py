"""Entries of the access control list: `/access/acl`, one call for each change, one list for all reads."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import StackyardError
from stackyard.fields.properties import flag

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackyard.provider.kinds import Resource, Work
    from stackyard.provider.values import Object

__all__ = ["Entry", "find_entries", "require_sight", "set_entry", "with_entries"]

_LIST_AGE_S = 0.5


class HiddenEntryError(StackyardError):
    """An entry is not in the list of those that the caller may see, so no one can say whether it is gone."""

    code = "E-PROVIDER-ACL-HIDDEN"
    summary = "An entry of the access control list cannot be seen"
    default_remedy = "Give the user or token of the provider Sys.Audit on /access."


@dataclass(frozen=True, slots=True)
class Entry:
    """A role of a user, group or token on a path."""

    path: str
    kind: str
    owner: str
    role: str


async def find_entries(work: Work) -> dict[Entry, bool]:
    """Return the entries that the caller may see, each with whether it is for what is inside too."""
    listed = await work.client.get("/access/acl", max_age_s=_LIST_AGE_S)
    return {
        Entry(row["path"], row["type"], row["ugid"], row["roleid"]): flag(row.get("propagate", 1))
        for row in listed
    }


async def require_sight(work: Work, path: str) -> None:
    """Check that an entry of a path would be in the list if it were there.

    Raises:
        HiddenEntryError: The caller may not see the entries of the path.
    """
    if await _may(work, "/access", "Sys.Audit") or await _may(work, path, "Permissions.Modify"):
        return
    raise HiddenEntryError(f"The caller may not see the access control list of {path}.")


async def _may(work: Work, path: str, privilege: str) -> bool:
    rights = await work.client.get("/access/permissions", {"path": path}, max_age_s=_LIST_AGE_S)
    return privilege in (rights.get(path) or {})


async def set_entry(work: Work, entry: Entry, *, propagate: bool | None = None, gone: bool = False) -> None:
    """Add an entry, or remove it."""
    params = {"path": entry.path, "roles": entry.role, f"{entry.kind}s": entry.owner, "propagate": propagate}
    await work.client.put("/access/acl", {**params, "delete": True if gone else None})


def with_entries(resource: Resource, kind: str, attribute: str) -> Resource:
    """Return a resource of users or groups whose blocks `acl` are entries for them.

    Args:
        resource: The users or groups.
        kind: `user` or `group`.
        attribute: The attribute that has the name of one.
    """
    owners = _Owners(resource, kind, attribute)
    return dataclasses.replace(resource, create=owners.create, read=owners.read, update=owners.update)


@dataclass(frozen=True, slots=True)
class _Owners:
    resource: Resource
    kind: str
    attribute: str

    async def create(self, work: Work, planned: Object) -> Object:
        made = {**await self.resource.create(work, planned), "acl": planned.get("acl")}
        work.keep({**made, "acl": []})
        await self._change(work, {}, made)
        return made

    async def read(self, work: Work, state: Object) -> Object | None:
        found = await self.resource.read(work, state)
        # Entries that are resources of their own are none of ours.
        if found is None or not state.get("acl"):
            return found
        blocks = [
            {"path": entry.path, "propagate": propagate, "role_id": entry.role}
            for entry, propagate in (await find_entries(work)).items()
            if (entry.kind, entry.owner) == (self.kind, found[self.attribute])
        ]
        return {**found, "acl": blocks}

    async def update(self, work: Work, prior: Object, planned: Object) -> Object:
        if self.resource.update is None:
            return planned
        changed = {**await self.resource.update(work, prior, planned), "acl": planned.get("acl")}
        await self._change(work, prior, changed)
        return changed

    async def _change(self, work: Work, prior: Object, planned: Object) -> None:
        before, after = self._entries(prior), self._entries(planned)
        for entry in before.keys() - after.keys():
            await set_entry(work, entry, gone=True)
        for entry, propagate in after.items():
            if before.get(entry) is not propagate:
                await set_entry(work, entry, propagate=propagate)

    def _entries(self, state: Object) -> dict[Entry, bool]:
        blocks: Iterable[dict[str, Any]] = state.get("acl") or ()
        return {
            Entry(one["path"], self.kind, str(state[self.attribute]), one["role_id"]): bool(
                one.get("propagate")
            )
            for one in blocks
        }
