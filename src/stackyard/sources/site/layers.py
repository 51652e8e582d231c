"""One guest from its layers: preset, template, env entry, each over the one before.

A mapping is merged key by key, everything else is replaced. The short forms are what counts: `nics[0].bridge`
and `bridge` are one value here, whichever of them a layer writes, and so are `cpu.cores` and `cores`,
`memory.dedicated_mib` and `memory`, `disks[0].size_gib`, `root_disk.size_gib` and `disk`, `vm_id` and `vmid`,
`cloud_init.packages` and `packages`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from stackyard.sources.site.damaged import is_lost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stackyard.base.errors import Location
    from stackyard.sources.site.document import Key, LocatedValues

__all__ = ["PLAIN_KEYS", "GuestEntry", "Layer", "merge", "origin", "vmid_of"]

# What such sites could always say of a guest; the checks of the site itself cover all of it.
PLAIN_KEYS = frozenset(
    "name type image spec cores memory disk bridge network ip gateway vlan packages vmid template preset "
    "vm_preset description".split()
)
# Which fields of the first card have a short form, in the order of what they take the place of.
FIRST_NIC = {
    "bridge": "bridge",
    "network": "network",
    "vlan": "vlan",
    "mac": "mac",
    "ipv4": "ip",
    "gateway4": "gateway",
    "ipv6": "ip",
    "gateway6": "gateway",
}
NIC_KEYS = frozenset(FIRST_NIC.values())


class Layer(NamedTuple):
    """One file's say about a guest."""

    places: LocatedValues
    path: tuple[Key, ...]
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GuestEntry:
    """A guest of an env, merged.

    Attributes:
        name: What it is called.
        index: Which entry of the env it is, from zero.
        values: What all layers say together.
        layers: The layers, the env's own last.
    """

    name: str
    index: int
    values: dict[str, Any]
    layers: Sequence[Layer]

    @property
    def is_container(self) -> bool:
        """Whether it is a container."""
        return self.values.get("type") == "ct"

    @property
    def is_whole(self) -> bool:
        """Whether all that its layers say of it is known."""
        return not any(is_lost(layer.places, *layer.path) for layer in self.layers)

    def knows(self, *keys: str) -> bool:
        """Return whether all that its layers say of some fields is known."""
        return not any(is_lost(layer.places, *layer.path, key) for layer in self.layers for key in keys)

    def place(self, *paths: Sequence[Key]) -> Location:
        """Return where the value at the first of these paths comes from; the entry if no layer has it."""
        found = origin(self.layers, paths)
        if found is None:
            layer = self.layers[-1]
            return layer.places.place(layer.path)
        return found[0].places.place((*found[0].path, *found[1]))


def vmid_of(guest: GuestEntry, vmid_base: int | None) -> int | None:
    """Return the id of a guest: its own, else the base and its place in the env, else nothing."""
    if "vmid" in guest.values:
        own: int | None = guest.values["vmid"]
        return own
    return None if vmid_base is None else vmid_base + guest.index


def origin(layers: Sequence[Layer], paths: Iterable[Sequence[Key]]) -> tuple[Layer, Sequence[Key]] | None:
    """Return the last layer that has a value at one of these paths, and that path."""
    for layer in reversed(layers):
        for path in paths:
            if _has(layer.values, path):
                return layer, path
    return None


def _has(values: Any, path: Sequence[Key]) -> bool:
    for key in path:
        is_item = isinstance(values, list) and isinstance(key, int) and key < len(values)
        if not is_item and not (isinstance(values, dict) and key in values):
            return False
        values = values[key]
    return True


def merge(layers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what layers say together, in short forms."""
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            special = _SPECIAL.get(key)
            if special is not None:
                special(result, value)
            else:
                _put(result, key, value)
    return result


def _put(result: dict[str, Any], key: str, value: Any) -> None:
    before = result.get(key)
    result[key] = {**before, **value} if isinstance(value, dict) and isinstance(before, dict) else value


def _drop(result: dict[str, Any], value: Any) -> None:
    """Leave out what only says which other layers there are."""


def _make_rename(key: str) -> Callable[[dict[str, Any], Any], None]:
    def put(result: dict[str, Any], value: Any) -> None:
        result[key] = value

    return put


def _make_lift(key: str, inner: str, short: str) -> Callable[[dict[str, Any], Any], None]:
    """Return what puts one key of a mapping into its short form, and the rest as a mapping."""

    def put(result: dict[str, Any], value: Any) -> None:
        if not isinstance(value, dict):
            result[key] = value
            return
        rest = {name: part for name, part in value.items() if name != inner}
        if inner in value:
            result[short] = value[inner]
        if rest:
            _put(result, key, rest)

    return put


def _memory(result: dict[str, Any], value: Any) -> None:
    if not isinstance(value, dict):
        result["memory"] = value
        return
    _make_lift("memory_options", "dedicated_mib", "memory")(result, value)


def _disks(result: dict[str, Any], value: Any) -> None:
    result["disks"] = value
    if value and value[0].get("size_gib") is not None:
        result["disk"] = value[0]["size_gib"]


def _nics(result: dict[str, Any], value: Any) -> None:
    for key in NIC_KEYS:
        result.pop(key, None)
    result["nics"] = value
    for field, short in FIRST_NIC.items():
        if value and field in value[0] and short not in result and not _is_word6(field, value[0][field]):
            result[short] = value[0][field]


def _is_word6(field: str, value: Any) -> bool:
    """Return whether this is a word for IPv6 that the short form would take for IPv4."""
    return field == "ipv6" and value in ("dhcp", "manual")


def _bridge(result: dict[str, Any], value: Any) -> None:
    result.pop("network", None)
    result["bridge"] = value


def _network(result: dict[str, Any], value: Any) -> None:
    # The network says what to plug into, so that what an outer layer plugs into does not count.
    result.pop("bridge", None)
    result.pop("vlan", None)
    result["network"] = value


_SPECIAL: dict[str, Callable[[dict[str, Any], Any], None]] = {
    "template": _drop,
    "preset": _drop,
    "vm_preset": _drop,
    "vm_id": _make_rename("vmid"),
    "cpu": _make_lift("cpu", "cores", "cores"),
    "memory": _memory,
    "disks": _disks,
    "root_disk": _make_lift("root_disk", "size_gib", "disk"),
    "cloud_init": _make_lift("cloud_init", "packages", "packages"),
    "nics": _nics,
    "bridge": _bridge,
    "network": _network,
}
