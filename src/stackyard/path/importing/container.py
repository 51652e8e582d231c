"""A container of Proxmox in terms of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.desired import Container
from stackyard.path.importing.configuration import GIB, Configuration, as_address, as_flag, size_bytes
from stackyard.path.importing.shared import base_fields, dns_of, number, without_only_mac

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.path.importing.configuration import Parts, Translated

__all__ = ["translate_container"]

_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}


def translate_container(
    row: Mapping[str, Any], values: Mapping[str, Any], left_alone: Iterable[str] = ()
) -> Translated:
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
    fields["devices"] = [_device(parts) for _, parts in config.take_numbered("dev", "path")]
    fields["id_maps"] = _id_maps(config)
    _features(config, fields)
    console: dict[str, Any] = {}
    config.take_into(console, enabled=("console", as_flag), tty_count=("tty", int), type=("cmode", str))
    if console:
        fields["console"] = console
    dns = dns_of(config)
    if dns is not None:
        fields["dns"] = dns
    return config.translated(row, Container.model_validate, fields)


def _cpu(config: Configuration) -> dict[str, Any]:
    cpu: dict[str, Any] = {}
    config.take_into(
        cpu,
        cores=("cores", int),
        limit=("cpulimit", number),
        units=("cpuunits", int),
        architecture=("arch", str),
    )
    architecture = cpu.pop("architecture", "amd64")
    if architecture != "amd64":
        cpu["architecture"] = _ARCHITECTURES.get(architecture, architecture)
    if "cores" not in cpu:
        config.note(
            "has no number of cores (Proxmox means all of the node's), and the provider takes that for 1"
        )
    return cpu


def _memory(config: Configuration) -> dict[str, Any]:
    memory: dict[str, Any] = {"swap_mib": 0}
    config.take_into(memory, dedicated_mib=("memory", int), swap_mib=("swap", int))
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
    size = size_bytes(parts.take("size") or "")
    if size < GIB:
        config.lack("rootfs.size", "a disk has at least one GiB")
    elif size % GIB:
        config.note(f"has {size / GIB:.2f} GiB on rootfs, which counts as {size // GIB}")
    disk: dict[str, Any] = {
        "datastore": store,
        "size_gib": max(1, size // GIB),
        "quota": parts.take_flag("quota"),
    }
    parts.take_into(
        disk,
        acl=("acl", as_flag),
        replicate=("replicate", as_flag),
        mount_options=("mountoptions", lambda text: text.split(";")),
    )
    parts.done()
    return disk


def _mount(config: Configuration, parts: Parts) -> dict[str, Any]:
    volume = parts.take("volume") or ""
    store, colon, _ = volume.partition(":")
    mount: dict[str, Any] = {"volume": volume}
    size = parts.take("size")
    if colon:
        found = size_bytes(size or "")
        mount |= {"volume": store, "size_gib": found // GIB}
        if found < GIB or found % GIB:
            parts.lack("size", f"{size} is no whole number of GiB")
            mount["size_gib"] = 1
    parts.take_into(
        mount,
        path=("mp", str),
        backup=("backup", as_flag),
        read_only=("ro", as_flag),
        shared=("shared", as_flag),
        acl=("acl", as_flag),
        quota=("quota", as_flag),
        replicate=("replicate", as_flag),
        mount_options=("mountoptions", lambda text: text.split(";")),
    )
    parts.done()
    return mount


def _nics(config: Configuration) -> list[dict[str, Any]]:
    cards = [_nic(parts) for _, parts in config.take_numbered("net", "name")]
    told = [place for place, card in enumerate(cards) if "ipv4" in card or "ipv6" in card]
    for place in set(range(max(told, default=0))) - set(told):
        # The providers count addresses, not cards.
        config.lack(f"net{place}", "it says nothing of its address and a later one does: set ip=manual")
    return without_only_mac(cards)


def _nic(parts: Parts) -> dict[str, Any]:
    card: dict[str, Any] = {}
    parts.take_into(
        card,
        name=("name", str),
        mac=("hwaddr", str),
        bridge=("bridge", str),
        vlan=("tag", int),
        firewall=("firewall", as_flag),
        rate_limit_mb=("rate", float),
        mtu=("mtu", int),
        ipv4=("ip", as_address),
        gateway4=("gw", str),
        ipv6=("ip6", as_address),
        gateway6=("gw6", str),
    )
    if "bridge" not in card:
        parts.lack("bridge", "a card without a bridge is in no network that could be named")
    parts.done("type")
    return card


def _device(parts: Parts) -> dict[str, Any]:
    device: dict[str, Any] = {}
    parts.take_into(
        device,
        path=("path", str),
        mode=("mode", str),
        uid=("uid", int),
        gid=("gid", int),
        deny_write=("deny-write", as_flag),
    )
    parts.done()
    return device


def _features(config: Configuration, fields: dict[str, Any]) -> None:
    parts = config.take_parts("features", "")
    if parts is None:
        return
    features: dict[str, Any] = {}
    fields["features"] = features
    parts.take_into(features, **{name: (name, as_flag) for name in ("nesting", "keyctl", "fuse", "mknod")})
    parts.take_into(features, mount=("mount", lambda text: text.split(";")))
    parts.done()


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
