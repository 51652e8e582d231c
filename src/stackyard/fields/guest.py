"""Rows that virtual machines and containers share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.fields.properties import parse_integer
from stackyard.fields.table import Effect, Form, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ADDRESSES", "DNS", "STARTUP", "join_tags", "split_tags"]


def _write_delay(value: Any) -> Any:
    return value if value is not None and value >= 0 else None


_DELAY = Form(write=_write_delay, read=parse_integer, empty=-1)

_WORDS = Form(
    write=lambda words: " ".join(words or ()) or None, read=lambda words: str(words).split(), empty=()
)


def join_tags(tags: Iterable[str] | None) -> str | None:
    """Return tags as Proxmox takes them; None where there are none."""
    return ";".join(sorted(tag.strip() for tag in tags or () if tag and tag.strip())) or None


def split_tags(text: Any) -> list[str]:
    """Return tags, however they are separated."""
    return [tag for tag in re.split(r"[;, ]+", str(text or "")) if tag]


# The properties of an address, and the block and attribute that each is in a resource.
ADDRESSES = {
    "ip": ("ipv4", "address"),
    "gw": ("ipv4", "gateway"),
    "ip6": ("ipv6", "address"),
    "gw6": ("ipv6", "gateway"),
}
DNS = Table(
    effect=Effect.REBOOT,
    rows=(
        Row(field="servers", key="nameserver", form=_WORDS),
        Row(field="domain", key="searchdomain"),
    ),
)
STARTUP = Table(
    bare="order",
    effect=Effect.LIVE,
    rows=(
        Row(field="order", form=_DELAY),
        Row(field="up_delay_s", attribute="up_delay", key="up", form=_DELAY),
        Row(field="down_delay_s", attribute="down_delay", key="down", form=_DELAY),
    ),
)
