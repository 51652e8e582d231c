"""The datasets of TrueNAS: documents `truenas_datasets/<id>` with the properties that were set on each.

What is not set is inherited from the parent; the root dataset of a pool has the defaults of ZFS.
"""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING, Any

from pvelab.truenas.problems import CallError, ValidationErrors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["POOL", "Datasets"]

POOL = "tank"
COLLECTION = "truenas_datasets"
_SIZE = 2**40
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.: -]*(/[A-Za-z0-9_.:-][A-Za-z0-9_.: -]*)*")
_DEFAULTS: Mapping[str, Any] = {
    "compression": "LZ4",
    "sync": "STANDARD",
    "atime": "OFF",
    "readonly": "OFF",
    "recordsize": "128K",
}
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "compression": ("ON", "OFF", "LZ4", "GZIP", "GZIP-1", "GZIP-9", "ZSTD", "ZSTD-FAST", "ZLE", "LZJB"),
    "sync": ("STANDARD", "ALWAYS", "DISABLED"),
    "atime": ("ON", "OFF"),
    "readonly": ("ON", "OFF"),
    "recordsize": ("512", "1K", "2K", "4K", "8K", "16K", "32K", "64K", "128K", "256K", "512K", "1M"),
}
_QUOTAS = ("quota", "refquota")
_SMALLEST_QUOTA = 2**30
_CREATE_ONLY = frozenset(
    ("name", "type", "create_ancestors", "share_type", "inherit_encryption", "encryption")
)
_UNITS = {"K": 2**10, "M": 2**20}
_INHERIT = "INHERIT"


class Datasets:
    """The datasets of one TrueNAS, which has one pool.

    Args:
        world: The lab, which keeps them.
    """

    def __init__(self, world: World) -> None:
        self._world = world

    def list_entries(self) -> list[dict[str, Any]]:
        """Return all datasets, as the API shows them."""
        return [self._entry(name) for name in sorted({POOL, *self._world.store.items(COLLECTION)})]

    def create(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Create a dataset; return it.

        Raises:
            ValidationErrors: A value is refused, or the parent is not there.
        """
        name = str(data.get("name", ""))
        _check(data, "pool_dataset_create", extra=_CREATE_ONLY)
        if "/" not in name:
            raise _invalid("pool_dataset_create.name", "You need a full name, e.g. pool/newdataset")
        if not _NAME.fullmatch(name) or name != name.strip() or len(name) > 200:
            raise _invalid("pool_dataset_create.name", "Invalid dataset name")
        if data.get("type", "FILESYSTEM") != "FILESYSTEM":
            raise CallError("volumes are not simulated", errno.EOPNOTSUPP)
        if self._find(name) is not None:
            raise _invalid("pool_dataset_create.name", f"Path /mnt/{name} already exists")
        missing = self._list_missing_parents(name)
        self._check_parents(name, missing, can_create=bool(data.get("create_ancestors")))
        with self._world.store.transaction():
            for one in missing:
                self._world.store.put(COLLECTION, one, {"id": one, "properties": {}})
            self._world.store.put(COLLECTION, name, {"id": name, "properties": _take(data)})
        return self._entry(name)

    def update(self, name: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """Set properties of a dataset; return it.

        Raises:
            ValidationErrors: A value is refused, or there is no such dataset.
        """
        _check(data, "pool_dataset_update")
        found = self.require(name)
        kept = {**found["properties"], **_take(data)}
        for key, value in data.items():
            if value == _INHERIT:
                kept.pop(key, None)
        with self._world.store.transaction():
            self._world.store.put(COLLECTION, name, {"id": name, "properties": kept})
        return self._entry(name)

    def require(self, name: str) -> Document:
        """Return what is kept of a dataset.

        Raises:
            ValidationErrors: There is none of that name.
        """
        found = self._find(name)
        if found is None:
            raise ValidationErrors(("None", f"PoolDataset {name} does not exist", errno.ENOENT))
        return found

    def _find(self, name: str) -> Document | None:
        found = self._world.store.get(COLLECTION, name)
        return {"id": name, "properties": {}} if found is None and name == POOL else found

    def _list_missing_parents(self, name: str) -> list[str]:
        parts = name.split("/")[:-1]
        parents = ["/".join(parts[: end + 1]) for end in range(len(parts))]
        return [one for one in parents if self._find(one) is None]

    def _check_parents(self, name: str, missing: list[str], *, can_create: bool) -> None:
        if missing and missing[0] == name.split("/")[0]:
            text = f"zpool ({missing[0]}) does not exist."
            if can_create:
                text = "Please specify a pool which exists for the dataset/volume to be created"
            raise _invalid("pool_dataset_create.name", text)
        if missing and not can_create:
            raise _invalid("pool_dataset_create.name", f"Parent dataset ({missing[-1]}) does not exist.")

    def _entry(self, name: str) -> dict[str, Any]:
        own = self.require(name)["properties"]
        entry: dict[str, Any] = {
            "id": name,
            "name": name,
            "pool": name.split("/")[0],
            "type": "FILESYSTEM",
            "mountpoint": f"/mnt/{name}",
            "encrypted": False,
            "locked": False,
            "children": [],
            "user_properties": {},
            "available": _number(_SIZE, "DEFAULT"),
        }
        for key, default in _DEFAULTS.items():
            entry[key] = self._inherited(name, key, default)
        for key in _QUOTAS:
            entry[key] = _number(int(own.get(key) or 0), "LOCAL" if own.get(key) else "DEFAULT")
        if "comments" in own:
            entry["comments"] = _text(str(own["comments"]), "LOCAL")
        return entry

    def _inherited(self, name: str, key: str, default: str) -> dict[str, Any]:
        place: str = name
        while True:
            found = self._find(place)
            if found is not None and key in found["properties"]:
                source = "LOCAL" if place == name else "INHERITED"
                return _choice(key, str(found["properties"][key]), source)
            if "/" not in place:
                return _choice(key, default, "DEFAULT")
            place = place.rpartition("/")[0]


def _check(data: Mapping[str, Any], schema: str, *, extra: frozenset[str] = frozenset()) -> None:
    """Refuse what TrueNAS refuses in properties.

    Raises:
        ValidationErrors: A property is not known, or its value is none of those that it may have.
    """
    known = {*_CHOICES, *_QUOTAS, "comments", *extra}
    found = [
        (f"{schema}.{key}", "Extra inputs are not permitted", errno.EINVAL)
        for key in data
        if key not in known
    ]
    for key, choices in _CHOICES.items():
        value = data.get(key, _INHERIT)
        if value != _INHERIT and value not in choices:
            found.append((f"{schema}.{key}", f"{value!r} is an invalid {key}.", errno.EINVAL))
    for key in _QUOTAS:
        value = data.get(key)
        if value and (not isinstance(value, int) or value < _SMALLEST_QUOTA):
            text = f"Input should be greater than or equal to {_SMALLEST_QUOTA}"
            found.append((f"{schema}.{key}", text, errno.EINVAL))
    if found:
        raise ValidationErrors(*found)


def _take(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties that a request sets."""
    known = (*_CHOICES, *_QUOTAS, "comments")
    return {key: data[key] for key in known if data.get(key) not in (None, _INHERIT)}


def _choice(key: str, value: str, source: str) -> dict[str, Any]:
    if key == "recordsize":
        size = int(value[:-1]) * _UNITS[value[-1]] if value[-1] in _UNITS else int(value)
        return {"parsed": size, "rawvalue": str(size), "value": value, "source": source, "source_info": None}
    parsed: Any = value == "ON" if key in ("atime", "readonly") else value.lower()
    return {
        "parsed": parsed,
        "rawvalue": value.lower(),
        "value": value,
        "source": source,
        "source_info": None,
    }


def _number(value: int, source: str) -> dict[str, Any]:
    shown = None if not value else f"{value // 2**30} GiB" if value % 2**30 == 0 else str(value)
    return {
        "parsed": value or None,
        "rawvalue": str(value),
        "value": shown,
        "source": source,
        "source_info": None,
    }


def _text(value: str, source: str) -> dict[str, Any]:
    return {"parsed": value, "rawvalue": value, "value": value, "source": source, "source_info": None}


def _invalid(where: str, why: str) -> ValidationErrors:
    return ValidationErrors((where, why, errno.EINVAL))
