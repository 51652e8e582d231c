"""What a plan does with the single attributes of a container, beyond the facts of the original."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.fields.properties import parse_size
from stackyard.provider.checks import is_address, is_masked, matches, one_of, same_elements
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["RULES"]

_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_CONTROL = re.compile(r"[\x00-\x08\x10-\x1f\x7f]")
_LARGEST_ID = 2147483647


def _between(least: float, most: float) -> Callable[[Any], str | None]:
    return lambda value: None if least <= float(value) <= most else f"must be between {least} and {most}"


def _each(check: Callable[[Any], str | None]) -> Callable[[Any], str | None]:
    def check_all(values: Any) -> str | None:
        return next((wrong for one in values if isinstance(one, str) and (wrong := check(one))), None)

    return check_all


def _same_size(prior: str, config: str) -> bool:
    """Tell whether two sizes are the same; one that is left out is whatever Proxmox made."""
    return not config or (bool(prior) and parse_size(prior) == parse_size(config))


def _same_volume(prior: str, config: str) -> bool:
    """Tell whether a volume is the one that was made for what is written (`local-lvm`, `local-lvm:8`)."""
    return prior == config or prior.startswith(f"{config.partition(':')[0]}:")


def _check_environment(variables: Mapping[str, Any]) -> str | None:
    for name, value in variables.items():
        if not re.fullmatch(r"\w+", name, re.ASCII):
            return f"has the name {name!r}; names are letters, digits and underscores"
        if isinstance(value, str) and _CONTROL.search(value):
            return f"has control characters in the value of {name!r}"
    return None


def _check_size(text: str) -> str | None:
    return None if not text or parse_size(text) is not None else "must be a size such as 8G"


def _check_entrypoint(text: str) -> str | None:
    return "must not be empty or have control characters" if not text or _CONTROL.search(text) else None


_VM_ID = _between(100, _LARGEST_ID)
_FILE_ID = matches(r"|(?i:[a-z\d\-_.]+:([a-z\d\-_]+/)?.+)", "be a file such as local:vztmpl/debian.tar.zst")

RULES: Mapping[str, Rule] = {
    "clone.full": Rule(same=lambda prior, config: prior is None and config is True),
    "clone.vm_id": Rule(check=_VM_ID),
    "console.tty_count": Rule(check=_between(0, 6)),
    "console.type": Rule(check=one_of("console", "shell", "tty")),
    "cpu.architecture": Rule(check=one_of("amd64", "arm64", "armhf", "i386")),
    "cpu.cores": Rule(check=_between(1, 128)),
    "cpu.limit": Rule(check=_between(0, 8192)),
    "cpu.units": Rule(check=_between(1, 500000)),
    "device_passthrough.gid": Rule(check=_between(0, _LARGEST_ID)),
    "device_passthrough.mode": Rule(check=matches("0[0-7]{3}", "be an octal mode such as 0660")),
    "device_passthrough.path": Rule(check=matches(".+", "not be empty")),
    "device_passthrough.uid": Rule(check=_between(0, _LARGEST_ID)),
    "disk.mount_options": Rule(same=same_elements, check=_each(matches(".+", "have no empty elements"))),
    "disk.size": Rule(check=_between(0, _LARGEST_ID)),
    "environment_variables": Rule(check=_check_environment),
    "features.mount": Rule(check=_each(one_of("cifs", "nfs"))),
    "idmap.container_id": Rule(check=_between(0, _LARGEST_ID)),
    "idmap.host_id": Rule(check=_between(0, _LARGEST_ID)),
    "idmap.size": Rule(check=_between(1, _LARGEST_ID)),
    "idmap.type": Rule(check=one_of("uid", "gid")),
    "initialization.dns.servers": Rule(check=_each(is_address)),
    "initialization.entrypoint": Rule(check=_check_entrypoint),
    "initialization.hostname": Rule(check=matches(rf"|{_LABEL}(?:\.{_LABEL})*", "be a name of the DNS")),
    "initialization.user_account.password": Rule(same=is_masked),
    "memory.dedicated": Rule(check=_between(16, 268435456)),
    "memory.swap": Rule(check=_between(0, 268435456)),
    "mount_point.path": Rule(same=lambda prior, config: f"/{prior}" == config),
    "mount_point.size": Rule(same=_same_size, check=_check_size),
    "mount_point.volume": Rule(same=_same_volume),
    "network_interface.mac_address": Rule(
        same=lambda prior, config: not config or str(prior).upper() == str(config).upper(),
        check=matches("|(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}", "be a MAC address such as BC:24:11:00:00:01"),
    ),
    "operating_system.template_file_id": Rule(check=_FILE_ID),
    "operating_system.type": Rule(
        check=one_of(
            *("alpine", "archlinux", "centos", "debian", "devuan", "fedora", "gentoo", "nixos", "opensuse"),
            *("ubuntu", "unmanaged"),
        )
    ),
    "pool_id": Rule(in_place=True),
    "tags": Rule(same=same_elements, check=_each(matches(".+", "have no empty elements"))),
    "vm_id": Rule(check=_VM_ID),
}
