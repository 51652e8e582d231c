"""One checker for each format name of the API, and the reading of sizes.

A checker takes the value and raises `FormatError` with Proxmox's text. Names ending in `-list` and `-opt` are
derived from the plain name. Property strings with a name of their own are in `property_formats`.
"""

from __future__ import annotations

import functools
import re
import zoneinfo
from typing import TYPE_CHECKING

from pvelab.server.params.firewall_formats import FIREWALL_FORMATS
from pvelab.server.params.network_formats import NETWORK_FORMATS
from pvelab.server.params.texts import Checker, FormatError, make_pattern_checker, split_list
from stackyard.base.calendar_events import CalendarEventError, parse_calendar_event

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check_format", "format_size", "is_known_format", "parse_size"]

# A number of thousands of digits is no size, and Python refuses to read it.
_SIZE = re.compile(r"(\d{1,30}(?:\.\d{1,30})?)([KMGT](?:iB)?)?")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_VOLUME_ID = re.compile(r"([a-z][a-z0-9\-_.]*[a-z0-9]):(.+)", re.IGNORECASE | re.DOTALL)
_CONTENT_TYPES = frozenset(("images", "rootdir", "vztmpl", "iso", "backup", "snippets", "none", "import"))
_DRIVES = re.compile(r"(?:ide[0-3]|sata[0-5]|scsi(?:[12]?\d|30)|virtio(?:1[0-5]|\d))")
_BOOT_OTHERS = re.compile(r"(?:net(?:[12]?\d|3[01])|usb(?:1[0-3]|\d)|hostpci(?:1[0-5]|\d))")
_EMAIL = r"[\w+\-~]+(?:\.[\w+\-~]+)*@[a-zA-Z0-9\-]+(?:\.[a-zA-Z0-9\-]+)*"


def parse_size(text: str) -> int | None:
    """Return the bytes of a size such as `8G`, `1.5T` or `528K`, or None if it is none."""
    found = _SIZE.fullmatch(text)
    if not found:
        return None
    number, unit = found.groups()
    factor = _UNITS[unit[0]] if unit else 1
    # Whole numbers stay exact however large they are.
    return int(float(number) * factor) if "." in number else int(number) * factor


def format_size(size: int) -> str:
    """Return a size in the largest unit that divides it: `8G`, `528K`, `4M`, plain bytes otherwise."""
    for unit in ("", "K", "M", "G"):
        if size % 1024:
            return f"{size}{unit}"
        size //= 1024
    return f"{size}T"


def _identifier(kind: str) -> Checker:
    pattern = re.compile(r"[a-z][a-z0-9\-_.]*[a-z0-9]", re.IGNORECASE)

    def check(value: str) -> None:
        if len(value) < 2:
            raise FormatError(f"{kind} ID '{value}' cannot be shorter than 2 characters")
        if not pattern.fullmatch(value):
            raise FormatError(f"{kind} ID '{value}' contains illegal characters")

    return check


def _userid(value: str) -> None:
    if len(value) < 3:
        raise FormatError(f"user name '{value}' is too short")
    if len(value) > 64:
        raise FormatError(f"user name '{value}' is too long ({len(value)} > 64)")
    if not re.fullmatch(r"[^\s:/]+@[A-Za-z][A-Za-z0-9.\-_]+", value):
        raise FormatError(f"value '{value}' does not look like a valid user name")


def _pool(value: str) -> None:
    if value.count("/") > 2:
        raise FormatError(f"pool name '{value}' nested too deeply (max levels = 3)")
    if not re.fullmatch(r"[A-Za-z0-9.\-_]+(?:/[A-Za-z0-9.\-_]+){0,2}", value):
        raise FormatError(f"pool name '{value}' contains invalid characters")


def _disk_size(value: str) -> None:
    if parse_size(value) is None:
        raise FormatError(f"value does not look like a valid disk size: {value}")


def _volume_id(value: str) -> None:
    if not _VOLUME_ID.fullmatch(value):
        raise FormatError(f"unable to parse volume ID '{value}'")


def _volume_or_path(value: str) -> None:
    if not value.startswith("/"):
        _volume_id(value)


def _volume_or_media(value: str) -> None:
    if value not in ("none", "cdrom"):
        _volume_or_path(value)


def _boot_device(value: str) -> None:
    if not (_DRIVES.fullmatch(value) or _BOOT_OTHERS.fullmatch(value)):
        raise FormatError(f"invalid boot device '{value}'")


def _boot_disk(value: str) -> None:
    if not _DRIVES.fullmatch(value):
        raise FormatError(f"invalid boot disk '{value}'")


def _hotplug(value: str) -> None:
    if value in ("0", "1"):
        return
    for feature in split_list(value):
        if feature not in ("network", "disk", "cpu", "memory", "usb", "cloudinit"):
            raise FormatError(f"invalid hotplug feature '{feature}'")


def _startup(value: str) -> None:
    for part in value.split(","):
        if part.strip() and not re.fullmatch(r"(?:order=)?\d+|up=\d+|down=\d+", part):
            raise FormatError("unable to parse startup options")


def _cpuset(value: str) -> None:
    for part in value.split(","):
        if not re.fullmatch(r"\d+(?:-\d+)?", part):
            raise FormatError("unable to parse cpuset option")


def _content(value: str) -> None:
    if value not in _CONTENT_TYPES:
        raise FormatError(f"invalid content type '{value}'")


def _dir_override(value: str) -> None:
    content, equals, path = value.partition("=")
    if not equals or content not in _CONTENT_TYPES or not path or len(path) > 1022:
        raise FormatError(f"invalid override '{value}'")


@functools.cache
def _timezones() -> frozenset[str]:
    # Python looks through the disk for them each time.
    return frozenset(zoneinfo.available_timezones())


def _timezone(value: str) -> None:
    if value != "UTC" and value not in _timezones():
        raise FormatError(f"invalid time zone '{value}'")


def _container_timezone(value: str) -> None:
    if value != "host":
        _timezone(value)


def _phys_bits(value: str) -> None:
    if value != "host" and not (re.fullmatch(r"\d{1,9}", value) and 8 <= int(value) <= 64):
        raise FormatError("value must be an integer between 8 and 64 or 'host'")


def _pair(kind: str) -> Checker:
    check_id = _identifier("storage") if kind == "storage" else NETWORK_FORMATS["pve-bridge-id"]

    def check(value: str) -> None:
        for part in () if value == "1" else value.split(":", 1):
            try:
                check_id(part)
            except FormatError as err:
                raise FormatError(f"entry '{value}' contains invalid ID - {err}") from err

    return check


def _mount_path(value: str) -> None:
    if re.search(r"/\.\.?/|/\.\.?$|^\.\./", value):
        raise FormatError(f"{value} contains illegal character sequences")


def _device_path(value: str) -> None:
    if re.search(r"/\.\.?(?:/|$)", value) or not value.startswith("/dev/"):
        raise FormatError(f"{value} is not a valid device path")


def _calendar_event(value: str) -> None:
    try:
        parse_calendar_event(value)
    except CalendarEventError as err:
        raise FormatError(f"invalid calendar event '{value}' - {err}") from err


def _pem(kind: str) -> Checker:
    return make_pattern_checker(
        r"(?s)\s*-----BEGIN [A-Z0-9 ]+-----.*-----END [A-Z0-9 ]+-----\s*",
        f"not a valid PEM-formatted {kind}.",
    )


def _any(value: str) -> None:
    """Accept: the handler has the data to judge the value, the format alone does not."""


_NAMED: Mapping[str, Checker] = {
    "string": _any,
    "urlencoded": make_pattern_checker(r"[-%a-zA-Z0-9_.!~*'()]*", "invalid urlencoded string: {}"),
    "pve-configid": make_pattern_checker(r"[a-z][a-z0-9_-]+", "invalid configuration ID '{}'", re.IGNORECASE),
    "pve-storage-id": _identifier("storage"),
    "acme-plugin-id": _identifier("ACME plugin"),
    "pve-vmid": make_pattern_checker(r"[1-9][0-9]{2,8}", "value does not look like a valid VM ID"),
    "pve-node": make_pattern_checker(
        r"[a-zA-Z0-9]([a-zA-Z0-9\-]*[a-zA-Z0-9])?", "value does not look like a valid node name"
    ),
    "pve-ha-node": make_pattern_checker(
        r"[a-zA-Z0-9]([a-zA-Z0-9\-]*[a-zA-Z0-9])?(?::\d+)?", "value does not look like a valid ha node name"
    ),
    "pve-realm": make_pattern_checker(r"[A-Za-z][A-Za-z0-9.\-_]+", "value does not look like a valid realm"),
    "pve-userid": _userid,
    "pve-tokenid": make_pattern_checker(
        r"[^\s:/]+@[A-Za-z][A-Za-z0-9.\-_]+![A-Za-z][A-Za-z0-9.\-_]+",
        "value '{}' does not look like a valid token ID",
    ),
    "pve-groupid": make_pattern_checker(r"[A-Za-z0-9.\-_]+", "group name '{}' contains invalid characters"),
    "pve-roleid": make_pattern_checker(r"[A-Za-z0-9.\-_]+", "role name '{}' contains invalid characters"),
    "pve-poolid": _pool,
    # The list of privileges grows with the release; the roles handlers name an unknown one.
    "pve-priv": make_pattern_checker(r"[A-Za-z]+(?:\.[A-Za-z]+)+", "invalid privilege '{}'"),
    "disk-size": _disk_size,
    "pve-volume-id": _volume_id,
    "pve-volume-id-or-qm-path": _volume_or_media,
    "pve-volume-id-or-absolute-path": _volume_or_path,
    "pve-qm-bootdev": _boot_device,
    "pve-qm-bootdisk": _boot_disk,
    "pve-hotplug-features": _hotplug,
    "pve-startup-order": _startup,
    "pve-cpuset": _cpuset,
    "pve-tag": make_pattern_checker(r"[a-z0-9_][a-z0-9_\-+.]*", "invalid characters in tag", re.IGNORECASE),
    "pve-phys-bits": _phys_bits,
    "storage-pair": _pair("storage"),
    "bridge-pair": _pair("bridge"),
    "pve-storage-content": _content,
    "pve-storage-path": make_pattern_checker(
        r"(?s)/[^;()]+.*", "value does not look like a valid absolute path"
    ),
    "pve-storage-path-in-property-string": make_pattern_checker(
        r"/[^;,=()]+",
        "Value does not look like a valid absolute path. These symbols are currently not allowed"
        " in path: ;,=()",
    ),
    "pve-storage-options": make_pattern_checker(r"\S+", "invalid options '{}'"),
    "pve-storage-vgname": make_pattern_checker(
        r"[a-z0-9][a-z0-9\-_.]*[a-z0-9]", "lvm name '{}' contains illegal characters", re.IGNORECASE
    ),
    "pve-storage-zfs-blocksize": make_pattern_checker(r"\d+[KM]?", "invalid block size '{}'", re.IGNORECASE),
    "pve-dir-override": _dir_override,
    "pve-task-status-type": make_pattern_checker(
        r"ok|error|warning|unknown", "invalid status '{}'", re.IGNORECASE
    ),
    "pve-ct-timezone": _container_timezone,
    "timezone": _timezone,
    "pve-lxc-mp-string": _mount_path,
    "pve-lxc-dev-string": _device_path,
    "pve-calendar-event": _calendar_event,
    "pve-day-of-week": make_pattern_checker(r"mon|tue|wed|thu|fri|sat|sun", "invalid day '{}'"),
    "pve-replication-job-id": make_pattern_checker(
        r"[1-9][0-9]{2,8}-\d{1,9}", "replication job id '{}' contains illegal characters"
    ),
    "pve-ha-resource-id": make_pattern_checker(
        r"[a-z]+:\S+", "value does not look like a valid ha resource id"
    ),
    "pve-ha-resource-or-vm-id": make_pattern_checker(
        r"(?:[a-z]+:)?\S+", "value does not look like a valid ha resource id"
    ),
    "pve-acme-domain": make_pattern_checker(
        r"(?:\*\.)?[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?",
        "value does not look like a valid domain name!",
    ),
    "pve-acme-alias": make_pattern_checker(
        r"[a-zA-Z0-9_](?:[a-zA-Z0-9_\-.]*[a-zA-Z0-9])?", "value does not look like a valid alias name!"
    ),
    "ldap-simple-attr": make_pattern_checker(
        r"[a-zA-Z0-9]+", "value '{}' does not look like a simple ldap attribute name"
    ),
    "email": make_pattern_checker(_EMAIL, "value does not look like a valid email address"),
    "email-or-username": make_pattern_checker(
        rf"{_EMAIL}|[\w+\-~]+(?:\.[\w+\-~]+)*", "value does not look like a valid email address or user name"
    ),
    "graphite-path": make_pattern_checker(
        r"[a-zA-Z0-9_\-.]+", "value does not look like a valid graphite path"
    ),
    "pem-string": _pem("string"),
    "pem-certificate": _pem("certificate"),
    "pem-certificate-chain": _pem("certificate chain"),
    "pve-sdn-route-map-id": make_pattern_checker(
        r"[a-zA-Z0-9_\-]+", "Route Map ID '{}' contains illegal characters"
    ),
    "pve-sdn-prefix-list-id": make_pattern_checker(
        r"[a-zA-Z0-9_\-]+", "Prefix List ID '{}' contains illegal characters"
    ),
    "pve-command-batch": _any,
    "regex": _any,
    **NETWORK_FORMATS,
    **FIREWALL_FORMATS,
}


def is_known_format(name: str) -> bool:
    """Return whether `check_format` has a checker for a name."""
    return name in _NAMED or name.removesuffix("-list") in _NAMED or name.removesuffix("-opt") in _NAMED


def check_format(name: str, value: str) -> None:
    """Check a value against a named format; an unknown name accepts everything.

    Raises:
        FormatError: The value does not fit.
    """
    checker = _NAMED.get(name)
    if checker is not None:
        checker(value)
    elif name.endswith("-list") and (each := _NAMED.get(name.removesuffix("-list"))) is not None:
        for part in split_list(value):
            each(part)
    elif name.endswith("-opt") and value and (plain := _NAMED.get(name.removesuffix("-opt"))) is not None:
        plain(value)
