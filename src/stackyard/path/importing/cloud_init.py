"""What cloud-init is told of a virtual machine."""

from __future__ import annotations

import urllib.parse
from typing import TYPE_CHECKING, Any

from stackyard.path.importing.configuration import as_address
from stackyard.path.importing.shared import dns_of

if TYPE_CHECKING:
    from stackyard.path.importing.configuration import Configuration

__all__ = ["tell_cloud_init"]

_SETTINGS = r"ipconfig\d+|ciuser|cipassword|sshkeys|citype|ciupgrade|cicustom|nameserver|searchdomain"
_FILES = {"user": "user_data", "vendor": "vendor_data", "network": "network_data", "meta": "meta_data"}


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
    said: dict[str, Any] = {**drive, **_files(config), **_users(config)}
    config.take_into(said, type=("citype", str))
    # Proxmox upgrades the packages at the first boot unless it is told not to.
    said["upgrade"] = config.take_flag("ciupgrade", default=True)
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
        parts.take_into(
            cards[place],
            ipv4=("ip", as_address),
            gateway4=("gw", str),
            ipv6=("ip6", as_address),
            gateway6=("gw6", str),
        )
        parts.done()


def _users(config: Configuration) -> dict[str, Any]:
    user: dict[str, Any] = {}
    # Nobody can read it, and nobody changes what he does not know.
    has_password = config.take("cipassword") is not None
    config.take_into(user, name=("ciuser", str), keys=("sshkeys", _keys))
    return {"users": [user]} if user or has_password else {}


def _keys(text: str) -> list[str]:
    return urllib.parse.unquote(text).strip().split("\n")


def _files(config: Configuration) -> dict[str, Any]:
    said: dict[str, Any] = {}
    files = config.take_parts("cicustom", "")
    if files is not None:
        files.take_into(said, **{field: (name, str) for name, field in _FILES.items()})
        files.done()
    return said
