"""A container of Proxmox in terms of the model: the inverse of `render.container`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.desired import Container
from stackyard.fields.container import (
    BASICS,
    CONSOLE,
    CPU,
    DEVICE,
    FEATURES,
    INTERFACE,
    MEMORY,
    MOUNT_POINT,
    ROOT_DISK,
)
from stackyard.fields.guest import DNS, STARTUP
from stackyard.fields.properties import GIB, list_numbered, parse_size
from stackyard.path.importing.configuration import Configuration, KnownParts, parts_of
from stackyard.path.importing.shared import KNOWN_KEYS, base_fields, card_fields, size_gib, without_only_mac
from stackyard.provider.resources.container.describe import describe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.path.importing.configuration import TranslatedGuest
    from stackyard.provider.values import Object

__all__ = ["translate_container"]

# As many as Proxmox allows.
_CARDS = 32
# Blocks that the provider otherwise leaves out where they have their defaults.
_SHOWN: dict[str, Any] = {name: [{}] for name in ("console", "cpu", "features", "memory", "operating_system")}
_KNOWN: dict[str, KnownParts | None] = {
    **KNOWN_KEYS,
    **{row.property_name: None for table in (BASICS, CPU, MEMORY, CONSOLE, DNS) for row in table},
    **dict.fromkeys(("hostname", "ostype", "unprivileged", "lxc")),
    "startup": parts_of(STARTUP),
    "features": parts_of(FEATURES),
    "rootfs": parts_of(ROOT_DISK, "volume", "size"),
    r"mp\d+": parts_of(MOUNT_POINT, "volume", "size"),
    r"dev\d+": parts_of(DEVICE),
    r"net\d+": parts_of(INTERFACE, "type"),
}


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
    # So that every card has a block for its addresses, also one that has none.
    state = {**_SHOWN, "initialization": [{"ip_config": [{}] * _CARDS}]}
    attributes = config.read(lambda given: describe(given, state))
    told = attributes["initialization"][0]
    fields = base_fields(config, row, attributes, BASICS)
    fields["name"] = fields["key"] = told["hostname"] or f"CT{row['vmid']}"
    fields["on_boot"] = attributes["start_on_boot"]
    fields["unprivileged"] = attributes["unprivileged"]
    if "ostype" in config.values:
        fields["os_type"] = attributes["operating_system"][0]["type"]
    _add_processing(config, attributes, fields)
    fields["root_disk"] = _root_disk(config, attributes)
    config.lack_gaps("mp", "net", "dev")
    mounts = zip(list_numbered(config.values, "mp"), attributes["mount_point"], strict=True)
    fields["mounts"] = [_mount(config, f"mp{number}", block) for (number, _), block in mounts]
    fields["nics"] = _nics(config, attributes)
    fields["devices"] = config.numbered("dev", DEVICE, attributes["device_passthrough"])
    fields["id_maps"] = _id_maps(config, attributes)
    for dns in told["dns"]:
        fields["dns"] = DNS.to_fields(dns, config.values)
    config.lack_unknown(_KNOWN)
    return config.translate(row, Container.model_validate, fields)


def _add_processing(config: Configuration, attributes: Object, fields: dict[str, Any]) -> None:
    fields["cpu"] = CPU.to_fields(attributes["cpu"][0], config.values)
    if "cores" not in fields["cpu"]:
        config.note(
            "has no number of cores (Proxmox means all of the node's), and the provider takes that for 1"
        )
    fields["memory"] = {"swap_mib": 0, **MEMORY.to_fields(attributes["memory"][0], config.values)}
    if "dedicated_mib" not in fields["memory"]:
        config.lack("memory", "it is not set, and the provider takes that for none: set it")
    elif fields["memory"]["swap_mib"] == fields["memory"]["dedicated_mib"]:
        del fields["memory"]["swap_mib"]
    if "features" in config.values:
        fields["features"] = config.fields("features", FEATURES, attributes["features"][0])
    fields["console"] = CONSOLE.to_fields(attributes["console"][0], config.values)


def _root_disk(config: Configuration, attributes: Object) -> dict[str, Any]:
    if "rootfs" not in config.values:
        config.lack("rootfs", "it has none")
        return {"datastore": "none"}
    block = attributes["disk"][0]
    if ":" not in block["path_in_datastore"]:
        config.lack("rootfs", "it is a path of the node, which is no volume of a storage")
    return {
        "datastore": block["datastore_id"],
        "size_gib": size_gib(config, "rootfs", ROOT_DISK.bare),
        **config.fields("rootfs", ROOT_DISK, block),
    }


def _mount(config: Configuration, key: str, block: Object) -> dict[str, Any]:
    mount = {"volume": block["volume"], **config.fields(key, MOUNT_POINT, block)}
    store, colon, _ = block["volume"].partition(":")
    if colon:
        size = parse_size(block["size"]) or 0
        mount |= {"volume": store, "size_gib": size // GIB}
        if size < GIB or size % GIB:
            config.lack(f"{key}.size", f"{block['size'] or None} is no whole number of GiB")
            mount["size_gib"] = 1
    return mount


def _nics(config: Configuration, attributes: Object) -> list[dict[str, Any]]:
    blocks = attributes["network_interface"]
    addresses = attributes["initialization"][0]["ip_config"]
    cards = []
    for (number, _), block, ip_config in zip(
        list_numbered(config.values, "net"), blocks, addresses, strict=True
    ):
        cards.append(card_fields(config, f"net{number}", INTERFACE, block, ip_config))
        if not block["bridge"]:
            config.lack(f"net{number}.bridge", "a card without a bridge is in no network that could be named")
    told = [place for place, card in enumerate(cards) if "ipv4" in card or "ipv6" in card]
    for place in set(range(max(told, default=0))) - set(told):
        # The providers count addresses, not cards.
        config.lack(f"net{place}", "it says nothing of its address and a later one does: set ip=manual")
    return without_only_mac(cards)


def _id_maps(config: Configuration, attributes: Object) -> list[Object]:
    for name, value in config.values.get("lxc") or ():
        if name != "lxc.idmap" or len(str(value).split()) != 4:
            config.lack(str(name), "the model has nothing for it")
    id_maps: list[Object] = attributes["idmap"]
    return id_maps
