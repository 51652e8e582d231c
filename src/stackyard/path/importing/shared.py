"""What virtual machines and containers say alike in their configuration."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.fields.guest import DNS, STARTUP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.path.importing.configuration import Configuration

__all__ = ["base_fields", "dns_of", "tags_of", "without_only_mac"]


def base_fields(config: Configuration, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what every guest has."""
    fields: dict[str, Any] = {
        "node": str(row["node"]),
        "vm_id": int(row["vmid"]),
        "imported": True,
        "protection": config.take_flag("protection"),
        "on_boot": config.take_flag("onboot"),
        "is_template": config.take_flag("template"),
    }
    if not fields["is_template"]:
        fields["started"] = row.get("status") == "running"
    if row.get("pool"):
        fields["pool"] = str(row["pool"])
    config.take_into(
        fields, description=("description", str), tags=("tags", tags_of), hook_script=("hookscript", str)
    )
    text = fields.get("description", "").rstrip("\n")
    if text != text.strip():
        config.lack(
            "description", "it begins or ends with blanks, which the providers take away: remove them"
        )
    startup = config.take_table("startup", STARTUP)
    if startup is not None:
        fields["startup"] = startup
    lock = config.take("lock")
    if lock is not None:
        config.lack("lock", f"it is locked ({lock}) and about to change: wait until that is over")
    # What a snapshot, an unused disk or a digest says is not about what should be there.
    config.forget("digest", "parent", *config.matching(r"unused\d+"))
    return fields


def tags_of(text: str) -> list[str]:
    """Return tags, however they are separated."""
    return [tag for tag in re.split(r"[;, ]+", text) if tag]


def dns_of(config: Configuration) -> dict[str, Any] | None:
    """Return how the guest finds names; None where it is not told."""
    dns: dict[str, Any] = {}
    config.take_rows(dns, DNS)
    return dns or None


def without_only_mac(cards: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return cards without the address of an only one, which keeps its own; several are told by theirs."""
    if len(cards) == 1:
        cards[0].pop("mac", None)
    return cards
