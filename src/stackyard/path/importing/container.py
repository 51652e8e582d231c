"""A container of Proxmox in terms of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.desired import Container
from stackyard.fields.container import (
    CONSOLE,
    CPU,
    DEVICE,
    FEATURES,
    INTERFACE,
    MEMORY,
    MOUNT_POINT,
    ROOT_DISK,
)
from stackyard.fields.properties import GIB, parse_size
from stackyard.path.importing.configuration import Configuration, as_address
from stackyard.path.importing.shared import base_fields, dns_of, without_only_mac

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.path.importing.configuration import Parts, TranslatedGuest

__all__ = ["translate_container"]


def translate_container(
    row: Mapping[str, Any], values: Mapping[str, Any], left_alone: Iterable[str] = ()
) -> TranslatedGuest:
    """Return a container in terms of the model, or everything that stands against it.

    Args:
        row: How the cluster lists it.
        values: Its configuration.
        left_alone: Keys that stay outside of everything.
    """
    config = Configuration(values, left_alone)
    fields = base_fields(config, row)
    fields["name"] = fields["key"] = config.take("hostname") or f"CT{row['vmid']}"
    fields["unprivileged"] = config.take_flag("unprivileged")
    config.take_into(fields, os_type=("ostype", str))
    fields["cpu"] = _cpu(config)
    fields["memory"] = _memory(config)
    fields["root_disk"] = _root_disk(config)
    fields["mounts"] = [_mount(config, parts) for _, parts in config.take_numbered("mp", "volume")]
    fields["nics"] = _nics(config)
    fields["devices"] = [parts.take_rows({}, DEVICE) for _, parts in config.take_numbered("dev", DEVICE.bare)]
    fields["id_maps"] = _id_maps(config)
    features = config.take_table("features", FEATURES)
    if features is not None:
        fields["features"] = features
    fields["console"] = console = dict[str, Any]()
    config.take_rows(console, CONSOLE)
    dns = dns_of(config)
    if dns is not None:
        fields["dns"] = dns
    return config.translated(row, Container.model_validate, fields)


def _cpu(config: Configuration) -> dict[str, Any]:
    cpu: dict[str, Any] = {}
    config.take_rows(cpu, CPU)
    if "cores" not in cpu:
        config.note(
            "has no number of cores (Proxmox means all of the node's), and the provider takes that for 1"
        )
    return cpu


def _memory(config: Configuration) -> dict[str, Any]:
    memory: dict[str, Any] = {"swap_mib": 0}
    config.take_rows(memory, MEMORY)
    if "dedicated_mib" not in memory:
        config.lack("memory", "it is not set, and the provider takes that for none: set it")
    elif memory["swap_mib"] == memory["dedicated_mib"]:
        del memory["swap_mib"]
    return memory


def _root_disk(config: Configuration) -> dict[str, Any]:
    parts = config.take_parts("rootfs", "volume")
    if parts is None:
        config.lack("rootfs", "it has none")
        return {"datastore": "none"}
    volume = parts.take("volume") or ""
    store, colon, _ = volume.partition(":")
    if not colon:
        config.lack("rootfs", "it is a path of the node, which is no volume of a storage")
    size = parse_size(parts.take("size")) or 0
    if size < GIB:
        config.lack("rootfs.size", "a disk has at least one GiB")
    elif size % GIB:
        config.note(f"has {size / GIB:.2f} GiB on rootfs, which counts as {size // GIB}")
    return parts.take_rows({"datastore": store, "size_gib": max(1, size // GIB)}, ROOT_DISK)


def _mount(config: Configuration, parts: Parts) -> dict[str, Any]:
    volume = parts.take("volume") or ""
    store, colon, _ = volume.partition(":")
    mount: dict[str, Any] = {"volume": volume}
    size = parts.take("size")
    if colon:
        found = parse_size(size) or 0
        mount |= {"volume": store, "size_gib": found // GIB}
        if found < GIB or found % GIB:
            parts.lack("size", f"{size} is no whole number of GiB")
            mount["size_gib"] = 1
    return parts.take_rows(mount, MOUNT_POINT)


def _nics(config: Configuration) -> list[dict[str, Any]]:
    cards = [_nic(parts) for _, parts in config.take_numbered("net", "name")]
    told = [place for place, card in enumerate(cards) if "ipv4" in card or "ipv6" in card]
    for place in set(range(max(told, default=0))) - set(told):
        # The providers count addresses, not cards.
        config.lack(f"net{place}", "it says nothing of its address and a later one does: set ip=manual")
    return without_only_mac(cards)


def _nic(parts: Parts) -> dict[str, Any]:
    card: dict[str, Any] = {}
    parts.take_into(card, ipv4=("ip", as_address), ipv6=("ip6", as_address))
    parts.take_rows(card, INTERFACE, "type")
    if "bridge" not in card:
        parts.lack("bridge", "a card without a bridge is in no network that could be named")
    return card


def _id_maps(config: Configuration) -> list[dict[str, Any]]:
    maps = []
    for name, value in config.take_list("lxc"):
        words = str(value).split()
        if name != "lxc.idmap" or len(words) != 4:
            config.lack(str(name), "the model has nothing for it")
            continue
        kind = {"u": "uid", "g": "gid"}.get(words[0], words[0])
        maps.append(
            {"type": kind, "container_id": int(words[1]), "host_id": int(words[2]), "size": int(words[3])}
        )
    return maps
