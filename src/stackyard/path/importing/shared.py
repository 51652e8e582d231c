"""What virtual machines and containers have alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.addresses import parse_interface
from stackyard.fields.guest import STARTUP, split_tags
from stackyard.fields.properties import GIB, parse_size
from stackyard.path.importing.protection import add_protection
from stackyard.provider.guests.addresses import write_ip_config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.fields.table import Table
    from stackyard.path.importing.configuration import Configuration, KnownParts
    from stackyard.provider.values import Object

__all__ = ["KNOWN_KEYS", "base_fields", "card_fields", "size_gib", "without_only_mac"]

# The keys of every guest. What a snapshot, an unused disk or a digest says is not about what should be there.
KNOWN_KEYS: dict[str, KnownParts | None] = dict.fromkeys(
    ("template", "tags", "lock", "digest", "parent", r"unused\d+")
)


def base_fields(
    config: Configuration, row: Mapping[str, Any], attributes: Object, basics: Table
) -> dict[str, Any]:
    """Return what every guest has."""
    fields: dict[str, Any] = {
        "node": str(row["node"]),
        "vm_id": int(row["vmid"]),
        "imported": True,
        "is_template": attributes["template"],
        "tags": split_tags(config.values.get("tags")),
        **basics.to_fields(attributes, config.values),
    }
    if not fields["is_template"]:
        fields["started"] = row.get("status") == "running"
    add_protection(config, row, fields)
    if row.get("pool"):
        fields["pool"] = str(row["pool"])
    text = fields.get("description", "").rstrip("\n")
    if text != text.strip():
        config.lack(
            "description", "it begins or ends with blanks, which the providers take away: remove them"
        )
    for startup in attributes["startup"]:
        fields["startup"] = config.fields("startup", STARTUP, startup)
    if "lock" in config.values:
        lock = config.values["lock"]
        config.lack("lock", f"it is locked ({lock}) and about to change: wait until that is over")
    return fields


def size_gib(config: Configuration, key: str, bare: str) -> int:
    """Return the size of a disk in whole GiB."""
    size = parse_size(config.parts(key, bare).get("size")) or 0
    if size < GIB:
        config.lack(f"{key}.size", "a disk has at least one GiB")
    elif size % GIB:
        config.note(f"has {size / GIB:.2f} GiB on {key}, which counts as {size // GIB}")
    return max(1, size // GIB)


def card_fields(
    config: Configuration, key: str, table: Table, card: Object, ip_config: Object
) -> dict[str, Any]:
    """Return the fields of a property that has the addresses of a card.

    Args:
        config: Where to report an address that is written in an unusual way.
        key: The property.
        table: The table with its rows.
        card: What else it says.
        ip_config: The block with the addresses.
    """
    addresses = write_ip_config(ip_config)
    fields = config.fields(key, table, {**card, **addresses})
    for name in ("ip", "ip6"):
        text = addresses[name] or ""
        if "/" in text and (usual := _usual(text)) != text:
            why = f"{text} is usually written {usual}, which providers compare: write it so"
            config.lack(f"{key}.{name}", why if usual else f"{text!r} is not understood")
            fields.pop("ipv4" if name == "ip" else "ipv6", None)
    return fields


def _usual(text: str) -> str:
    """Return an address as everybody writes it; empty where it is none."""
    try:
        return str(parse_interface(text))
    except ValueError:
        return ""


def without_only_mac(cards: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return cards without the address of an only one, which keeps its own; several are known by theirs."""
    if len(cards) == 1:
        cards[0].pop("mac", None)
    return cards
