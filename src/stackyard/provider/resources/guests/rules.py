"""What the attributes of these VMs may be, and what a change of one means."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.provider.checks import at_least, between, matches, one_of
from stackyard.provider.problems import ImportIdError
from stackyard.provider.resources.guests import timeouts
from stackyard.provider.schema import Rule
from stackyard.provider.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.provider.values import Object

__all__ = ["RULES", "identify", "keys_match"]

_CD_SLOTS = r"ide[0-3]|sata[0-5]|scsi([0-9]|[12][0-9]|30)"
_FILE = re.compile(r"(?i:cdrom|none|[a-z\d\-_.]+:([a-z\d\-_]+/)?.+)")


def keys_match(pattern: str, expected: str) -> Callable[[Any], str | None]:
    """Return a check that all keys of a map match a pattern."""
    compiled = re.compile(pattern)

    def check(value: Any) -> str | None:
        wrong = [key for key in value if not compiled.fullmatch(str(key))] if isinstance(value, dict) else []
        return f"has keys that are {expected}, and {wrong[0]!r} is none" if wrong else None

    return check


def _are_tags(value: Any) -> str | None:
    return (
        "must not have blank tags" if any(isinstance(one, str) and not one.strip() for one in value) else None
    )


def _is_processor(value: Any) -> str | None:
    """Check that CPU flags come with a type: Proxmox keeps both in one property, which the type begins."""
    flags = value.get("flags") if isinstance(value, dict) else None
    if flags in (None, UNKNOWN):
        return None
    if value.get("type") is None:
        return "has `flags`, which need a `type` beside them"
    blank = any(isinstance(one, str) and not one.strip() for one in flags)
    return "must not have blank `flags`" if blank else None


def identify(given: str) -> Object:
    """Return the node and the number in the id of an import."""
    node, _, number = given.partition("/")
    if not node or not number.isdigit() or int(number) == 0:
        raise ImportIdError(f"The id of a VM has the form NODE/NUMBER, and {given!r} does not.")
    return {"id": int(number), "node_name": node}


RULES = {
    **timeouts.RULES,
    "cdrom": Rule(check=keys_match(_CD_SLOTS, "one of ide0-3, sata0-5, scsi0-30")),
    "cdrom.file_id": Rule(
        check=lambda value: (
            None
            if _FILE.fullmatch(str(value))
            else "must be `cdrom`, `none` or a file such as local:iso/debian.iso"
        )
    ),
    "cpu": Rule(check=_is_processor),
    "cpu.affinity": Rule(check=matches(r"\d+[\d,-]*", "be numbers and ranges with commas between")),
    "cpu.architecture": Rule(check=one_of("aarch64", "x86_64")),
    "cpu.cores": Rule(check=between(1, 1024)),
    "cpu.limit": Rule(check=between(0, 128), fraction=True),
    "cpu.sockets": Rule(check=between(1, 16)),
    "cpu.units": Rule(check=at_least(0)),
    "cpu.vcpus": Rule(check=between(1, 1024)),
    "id": Rule(replace=True, keep=True),
    "purge_on_destroy": Rule(default=True),
    "rng.max_bytes": Rule(check=at_least(0)),
    "rng.period": Rule(check=at_least(0)),
    "rng.source": Rule(check=matches(r"(?s:.+)", "not be empty")),
    "stop_on_destroy": Rule(default=False),
    "tags": Rule(check=_are_tags),
    "vga.clipboard": Rule(check=one_of("vnc")),
    "vga.memory": Rule(check=between(4, 512)),
}
