"""The form of the answers that everything is built on: lists of guests, configurations, tasks.

A cluster that answers in another form is broken or hostile. That is said once, here, with the call that it is
about, and not by a later reader.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.base.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["wrong_shape"]

_TEXTS = ("name", "tags", "status", "pool", "hastate", "plugintype", "content")
_NUMBERS = ("maxmem", "mem", "maxdisk", "disk", "maxcpu", "uptime")
# Proxmox takes none of these with control characters in them.
_SHOWN = ("name", "node", "storage", "tags", "pool")
# What a row of the cluster has to have, by its type.
_NEEDED: dict[str, dict[str, type]] = {
    "node": {"node": str},
    "storage": {"node": str, "storage": str},
    "qemu": {"node": str, "vmid": int},
    "lxc": {"node": str, "vmid": int},
}


def _resources(answer: Any) -> str | None:
    if (problem := _rows(answer)) is not None or answer is None:
        return problem or "is not a list"
    for row in answer:
        needed = _NEEDED.get(row["type"], {}) if isinstance(row.get("type"), str) else {"type": str}
        wrong = [name for name, kind in needed.items() if type(row.get(name)) is not kind]
        wrong += [name for name in _TEXTS if not isinstance(row.get(name), str | None)]
        wrong += [name for name in _NUMBERS if not isinstance(row.get(name), int | float | None)]
        wrong += [name for name in _SHOWN if visible(text := str(row.get(name, ""))) != text or "\n" in text]
        if wrong:
            return f"has a row whose `{wrong[0]}` is not what it should be"
    return None


def _rows(answer: Any) -> str | None:
    is_list = answer is None or (isinstance(answer, list) and all(isinstance(row, dict) for row in answer))
    return None if is_list else "is not a list of objects"


def _object(answer: Any) -> str | None:
    return None if isinstance(answer, dict) else "is not an object"


_SHAPES: tuple[tuple[re.Pattern[str], Callable[[Any], str | None]], ...] = tuple(
    (re.compile(pattern), check)
    for pattern, check in (
        (r"/cluster/resources", _resources),
        (r"/nodes/[^/]+/(qemu|lxc)/\d+/(config|status/current)", _object),
        (r"/nodes/[^/]+/tasks/[^/]+/status", _object),
        (r"/nodes/[^/]+/tasks/[^/]+/log", _rows),
        (r"/nodes(/[^/]+/(qemu|lxc|network|storage|tasks))?", _rows),
        (r"/(storage|pools)", _rows),
    )
)


def wrong_shape(path: str, answer: Any) -> str | None:
    """Return what is wrong with the answer to a read of a path; None where nothing is, or is known."""
    for pattern, check in _SHAPES:
        if pattern.fullmatch(path):
            return check(answer)
    return None
