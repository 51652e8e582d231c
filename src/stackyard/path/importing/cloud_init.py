"""What cloud-init is told of a virtual machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.vm import CLOUD_INIT, CLOUD_INIT_FILES, IP_CONFIG, USER
from stackyard.path.importing.configuration import as_address
from stackyard.path.importing.shared import dns_of

if TYPE_CHECKING:
    from stackyard.path.importing.configuration import Configuration

__all__ = ["tell_cloud_init"]

_SETTINGS = r"ipconfig\d+|ciuser|cipassword|sshkeys|citype|ciupgrade|cicustom|nameserver|searchdomain"


def tell_cloud_init(config: Configuration, fields: dict[str, Any], drive: dict[str, Any] | None) -> None:
    """Add what cloud-init is told to the fields of a machine.

    Args:
        config: The configuration.
        fields: The fields so far; its cards get their addresses.
        drive: The drive that tells it; None where there is none.
    """
    if drive is None:
        unused = config.matching(_SETTINGS)
        config.forget(*unused)
        if unused:
            config.note("has settings for cloud-init and no drive that would tell it; they stay as they are")
        return
    _addresses(config, fields["nics"])
    files = config.take_table("cicustom", CLOUD_INIT_FILES) or {}
    said: dict[str, Any] = {**drive, **files, **_users(config)}
    config.take_rows(said, CLOUD_INIT)
    fields["cloud_init"] = said
    if "user_data" in said and "users" in said:
        config.lack("cicustom.user", "it replaces the user that `ciuser` is about: remove one of the two")
    dns = dns_of(config)
    if dns is not None:
        fields["dns"] = dns


def _addresses(config: Configuration, cards: list[dict[str, Any]]) -> None:
    for place, parts in config.take_numbered("ipconfig", "ip", gaps=True):
        if place >= len(cards):
            parts.lack("ip", f"there is no net{place}")
            continue
        parts.take_into(cards[place], ipv4=("ip", as_address), ipv6=("ip6", as_address))
        parts.take_rows(cards[place], IP_CONFIG)


def _users(config: Configuration) -> dict[str, Any]:
    user: dict[str, Any] = {}
    # Nobody can read it, and nobody changes what he does not know.
    has_password = config.take("cipassword") is not None
    config.take_rows(user, USER)
    return {"users": [user]} if user or has_password else {}
