"""What zones of every type have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.crud import Collection
from stackyard.provider.fields import COMMA_SET, NUMBER, TEXT, Field
from stackyard.provider.kinds import Resource, both_names
from stackyard.provider.resources.sdn.pending import PENDING, SDN_ID, current
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object


__all__ = ["make_zone"]


def _zone_state(known: Object, found: Mapping[str, Any]) -> Object:
    pending = found.get("pending") or {}
    is_pending = any(value not in (None, "", 0) for value in pending.values())
    return {"state": found.get("state") or None, "pending": True if is_pending else None}


_ZONE_FIELDS = (
    Field(attribute="ipam", form=TEXT),
    Field(attribute="dns", form=TEXT),
    Field(attribute="reverse_dns", key="reversedns", form=TEXT),
    Field(attribute="dns_zone", key="dnszone", form=TEXT),
    Field(attribute="nodes", form=COMMA_SET),
    # Once set, Proxmox cannot go back to its own value.
    Field(attribute="mtu", form=NUMBER, clears=False),
)


def make_zone(kind: str, *fields: Field, rules: Mapping[str, Rule] | None = None) -> Resource:
    """Return the resource of zones of a type, with the fields that only this type has."""
    return Collection(
        path="/cluster/sdn/zones",
        key="zone",
        made_with={"type": kind},
        fields=(*_ZONE_FIELDS, *fields),
        own_state=_zone_state,
        query=PENDING,
        current=current,
    ).resource(
        both_names(f"sdn_zone_{kind}"),
        rules={"id": Rule(replace=True, check=SDN_ID), "mtu": Rule(keep=True), **(rules or {})},
    )
