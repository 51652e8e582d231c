"""What storages of every type have in common: `/storage`."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from stackyard.provider.crud import Collection
from stackyard.provider.fields import COMMA_SET, FLAG, NUMBER, TEXT, Field
from stackyard.provider.kinds import both_names
from stackyard.provider.resources.storage.backups import (
    BACKUP_RULES,
    check_backups,
    print_retention,
    read_backups,
)
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.provider.kinds import Resource, Work
    from stackyard.provider.values import Object

__all__ = ["FOLDERS", "FOLDER_RULES", "StorageKind", "fixed", "lift_backups"]

_CONTENTS = ("backup", "images", "import", "iso", "rootdir", "snippets", "vztmpl")
FOLDERS = (
    Field(attribute="create_base_path", key="create-base-path", form=FLAG, clears=False),
    Field(attribute="create_subdirs", key="create-subdirs", form=FLAG, clears=False),
)
FOLDER_RULES = {"create_base_path": Rule(default=True), "create_subdirs": Rule(default=True)}
# What Proxmox goes by when a definition says nothing of it.
_UNSAID: Mapping[str, Any] = {
    "nodes": [],
    "content": [],
    "disable": False,
    "shared": False,
    "create_base_path": True,
    "create_subdirs": True,
    "wipe_removed_volumes": False,
}
# The block of backups, as the two properties that it consists of.
_BACKUPS = (
    Field(attribute="prune_backups", key="prune-backups", form=TEXT),
    Field(attribute="max_protected_backups", key="max-protected-backups", form=NUMBER),
)


def fixed(attribute: str, key: str = "") -> Field:
    """Return a field that is said once, when a storage is defined."""
    return Field(attribute=attribute, key=key, form=TEXT, create_only=True, clears=False)


def lift_backups(state: Object) -> Object:
    """Return a state with the properties that its block of backups consists of."""
    backups = state.get("backups") or {}
    return {
        **state,
        "prune_backups": print_retention(backups),
        "max_protected_backups": backups.get("max_protected_backups"),
    }


def _check_content(value: Any) -> str | None:
    if not value:
        return "must name what the storage holds, or be left out"
    wrong = sorted(one for one in value if isinstance(one, str) and one not in _CONTENTS)
    return f"must consist of {', '.join(_CONTENTS)}, and has {', '.join(wrong)}" if wrong else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class StorageKind:
    """Storages of one type.

    Attributes:
        kind: The end of the resource's name.
        type: The type in the API.
        fields: The attributes that other types do not have.
        rules: What its plans do with them.
        flags: Those of them that are flags without a default.
        shares: Whether the definition says that nodes share it; for other types Proxmox knows.
        backups: Whether it can hold backups.
    """

    kind: str
    type: str
    fields: Sequence[Field]
    rules: Mapping[str, Rule]
    flags: Sequence[str] = ()
    shares: bool = False
    backups: bool = False

    def all_fields(self) -> Sequence[Field]:
        """Return the fields of these storages, those of every type among them."""
        return (
            Field(attribute="nodes", form=COMMA_SET, off=[]),
            Field(attribute="content", form=COMMA_SET, clears=False),
            Field(attribute="disable", form=FLAG, clears=False),
            *((Field(attribute="shared", form=FLAG, clears=False),) if self.shares else ()),
            *(_BACKUPS if self.backups else ()),
            *self.fields,
        )

    def collection(self) -> Collection:
        """Return these storages as the API has them."""
        return Collection(
            path="/storage",
            key="storage",
            fields=self.all_fields(),
            made_with={"type": self.type},
            own_state=self.own_state,
            filtered=True,
        )

    def resource(self) -> Resource:
        """Return the resource."""
        collection = self.collection()

        async def create(work: Work, planned: Object) -> Object:
            return await collection.create(work, lift_backups(planned))

        async def update(work: Work, prior: Object, planned: Object) -> Object:
            return await collection.update(work, lift_backups(prior), lift_backups(planned))

        plain = collection.resource(
            both_names(f"storage_{self.kind}"),
            rules={
                "id": Rule(replace=True),
                "content": Rule(check=_check_content),
                "disable": Rule(default=False),
                **(BACKUP_RULES if self.backups else {}),
                **self.rules,
            },
            validate=check_backups if self.backups else None,
        )
        return dataclasses.replace(plain, create=create, update=update)

    def own_state(self, known: Object, row: Mapping[str, Any]) -> Object:
        """Return the attributes that no property gives as they are."""
        keys = {field.attribute: field.name for field in self.fields}
        state: Object = {
            name: unsaid for name, unsaid in _UNSAID.items() if row.get(keys.get(name, name)) is None
        }
        if row.get("shared") is not None:
            state["shared"] = FLAG.read(row["shared"])
        for field in self.fields:
            if field.attribute in self.flags and row.get(field.name) is None:
                # Off may be kept as nothing: then it is what the configuration has for it.
                state[field.attribute] = False if known.get(field.attribute) is False else None
        if self.backups:
            # A block that is not written is no one's wish; reading one would ask for its removal.
            state["backups"] = None if known.get("backups") is None else read_backups(row)
        return state
