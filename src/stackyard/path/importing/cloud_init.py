"""The cloud-init data of a virtual machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.guest import DNS
from stackyard.fields.properties import list_numbered
from stackyard.fields.vm import CLOUD_INIT, CLOUD_INIT_FILES, IP_CONFIG, USER
from stackyard.path.importing.configuration import parts_of
from stackyard.path.importing.shared import card_fields

if TYPE_CHECKING:
    from stackyard.path.importing.configuration import Configuration, KnownParts
    from stackyard.provider.values import Object

__all__ = ["KNOWN_SETTINGS", "add_cloud_init", "forget_settings"]

KNOWN_SETTINGS: dict[str, KnownParts | None] = {
    **{row.property_name: None for table in (CLOUD_INIT, USER, DNS) for row in table},
    "cipassword": None,
    "cicustom": parts_of(CLOUD_INIT_FILES),
    r"ipconfig\d+": parts_of(IP_CONFIG),
}


def forget_settings(config: Configuration) -> None:
    """Leave out what would be told, where there is no drive that tells it."""
    unused = [key for pattern in KNOWN_SETTINGS for key in config.list_matching(pattern)]
    config.forget(*unused)
    if unused:
        config.note("has settings for cloud-init and no drive that would tell it; they stay as they are")


def add_cloud_init(config: Configuration, block: Object, fields: dict[str, Any]) -> None:
    """Add the cloud-init data to the fields of a machine; its cards get their addresses.

    Args:
        config: The configuration.
        block: The block `initialization`.
        fields: The fields so far.
    """
    _add_addresses(config, block.get("ip_config") or [], fields["nics"])
    told: dict[str, Any] = {
        "interface": block["interface"],
        "datastore": block["datastore_id"],
        **config.fields("cicustom", CLOUD_INIT_FILES, block),
        **CLOUD_INIT.to_fields(block, config.values),
    }
    for account in block.get("user_account") or ():
        # Nobody can read a password, and nobody changes what he does not know.
        told["users"] = [USER.to_fields(account, config.values)]
    fields["cloud_init"] = told
    if "user_data" in told and "users" in told:
        config.lack("cicustom.user", "it replaces the user that `ciuser` is about: remove one of the two")
    for dns in block.get("dns") or ():
        fields["dns"] = DNS.to_fields(dns, config.values)


def _add_addresses(config: Configuration, blocks: list[Object], cards: list[dict[str, Any]]) -> None:
    for place, _ in list_numbered(config.values, "ipconfig"):
        if place < len(cards):
            cards[place] |= card_fields(config, f"ipconfig{place}", IP_CONFIG, {}, blocks[place])
        else:
            config.lack(f"ipconfig{place}.ip", f"there is no net{place}")
