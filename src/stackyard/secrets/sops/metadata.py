"""The part that SOPS adds to a file: who can open it, what is encrypted, and the MAC over all values."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stackyard.base.errors import InvalidInputError, Location
from stackyard.secrets.sops.rules import PathRule, rule_from

__all__ = [
    "AgeKey",
    "ForeignKey",
    "KeyGroup",
    "Metadata",
    "SopsMetadataError",
    "metadata_document",
    "now_text",
    "read_metadata",
]

# The version of SOPS that these files are tested with, and that they name.
SOPS_VERSION = "3.13.3"
# The services that we do not speak, and the field that names a key of each.
_FOREIGN = {
    "pgp": "fp",
    "kms": "arn",
    "gcp_kms": "resource_id",
    "azure_kv": "name",
    "hc_vault": "key_name",
    "hckms": "key_id",
}


class SopsMetadataError(InvalidInputError):
    """The `sops` part of a file is missing, cut off or not valid; its values cannot be trusted."""

    code = "E-SOPS-METADATA"
    summary = "The SOPS part of a file cannot be used"
    default_remedy = "Restore the file from version control; the `sops` part is written by programs only."


@dataclass(frozen=True, slots=True, kw_only=True)
class AgeKey:
    """The data key, or a part of it, wrapped for one age recipient."""

    recipient: str
    wrapped: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """The same for a service that we do not speak; kept as it is."""

    service: str
    name: str
    fields: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyGroup:
    """Keys any of which gives the same part of the data key."""

    age: tuple[AgeKey, ...] = ()
    foreign: tuple[ForeignKey, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """All of it.

    Attributes:
        groups: Who can open the file; with several groups, each has a part of the data key.
        threshold: How many of several groups are needed.
        rule: Which values are encrypted.
        is_mac_only_encrypted: Whether the MAC leaves out values that are not encrypted.
        mac: The MAC, encrypted.
        last_modified: When the file was changed last; the MAC is bound to it.
        version: The SOPS that wrote it.
    """

    groups: tuple[KeyGroup, ...]
    threshold: int
    rule: PathRule
    is_mac_only_encrypted: bool
    mac: str = ""
    last_modified: str = ""
    version: str = SOPS_VERSION

    @property
    def recipients(self) -> tuple[str, ...]:
        """The age recipients of all groups, each once."""
        return tuple(dict.fromkeys(key.recipient for group in self.groups for key in group.age))

    @property
    def foreign(self) -> tuple[ForeignKey, ...]:
        """The keys of other services in all groups."""
        return tuple(key for group in self.groups for key in group.foreign)

    @property
    def mac_context(self) -> str:
        """What the MAC is bound to: the time of the last change, as SOPS writes it after reading it."""
        return re.sub(r"(\.\d+)?(?:\+00:00|Z)$", "Z", self.last_modified)


def now_text() -> str:
    """Return the time as SOPS writes it."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_metadata(found: Mapping[str, object], where: Location) -> Metadata:
    """Read the `sops` part of a file.

    Raises:
        SopsMetadataError: It is not what SOPS writes.
        SopsRuleError: Its rule cannot be used.
    """
    if not found.get("mac") or not found.get("lastmodified"):
        raise SopsMetadataError(
            f"The `sops` part of {where.path} has no MAC, so its values cannot be verified.",
            where=where,
        )
    groups = tuple(_group(one, where) for one in _mappings(found, "key_groups", where))
    own = _group(found, where)
    if own.age or own.foreign:
        groups = (own,)
    if not groups:
        raise SopsMetadataError(f"The `sops` part of {where.path} names no keys.", where=where)
    return Metadata(
        groups=groups,
        threshold=_number(found, "shamir_threshold", where) or len(groups),
        rule=rule_from(found, where),
        is_mac_only_encrypted=str(found.get("mac_only_encrypted", "")).lower() in ("true", "1"),
        mac=str(found["mac"]),
        last_modified=str(found["lastmodified"]),
        version=str(found.get("version", "")),
    )


def _number(found: Mapping[str, object], name: str, where: Location) -> int:
    text = str(found.get(name) or 0)
    if not text.isdecimal() or int(text) > 255:
        raise SopsMetadataError(f"`{name}` in {where.path} is not a number of key groups.", where=where)
    return int(text)


def _mappings(found: Mapping[str, object], name: str, where: Location) -> list[Mapping[str, object]]:
    listed = found.get(name) or []
    if not isinstance(listed, Sequence) or not all(isinstance(one, Mapping) for one in listed):
        raise SopsMetadataError(
            f"`{name}` in the `sops` part of {where.path} is no list of keys.", where=where
        )
    return [dict(one) for one in listed if isinstance(one, Mapping)]


def _group(found: Mapping[str, object], where: Location) -> KeyGroup:
    age = []
    for one in _mappings(found, "age", where):
        if not isinstance(one.get("recipient"), str) or not isinstance(one.get("enc"), str):
            raise SopsMetadataError(f"An age key of {where.path} has no recipient or no text.", where=where)
        age.append(AgeKey(recipient=str(one["recipient"]), wrapped=str(one["enc"])))
    foreign = [
        ForeignKey(service=service, name=str(one.get(field, "?")), fields=one)
        for service, field in _FOREIGN.items()
        for one in _mappings(found, service, where)
    ]
    return KeyGroup(age=tuple(age), foreign=tuple(foreign))


def metadata_document(metadata: Metadata) -> dict[str, object]:
    """Return the `sops` part as SOPS orders it."""
    if len(metadata.groups) == 1:
        document = _group_document(metadata.groups[0])
    else:
        document = {
            "key_groups": [_group_document(group) for group in metadata.groups],
            "shamir_threshold": metadata.threshold,
        }
    document |= {
        "lastmodified": metadata.last_modified,
        "mac": metadata.mac,
        metadata.rule.kind.value: metadata.rule.pattern,
        "version": metadata.version or SOPS_VERSION,
    }
    if metadata.is_mac_only_encrypted:
        document["mac_only_encrypted"] = True
    return dict(sorted(document.items()))


def _group_document(group: KeyGroup) -> dict[str, object]:
    document: dict[str, object] = {}
    for key in group.foreign:
        listed = document.setdefault(key.service, [])
        if isinstance(listed, list):
            listed.append(dict(key.fields))
    if group.age:
        document["age"] = [{"enc": key.wrapped, "recipient": key.recipient} for key in group.age]
    return document
