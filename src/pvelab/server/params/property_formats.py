"""The property strings that have a name instead of a schema in the declared API.

Keys, types and limits as Proxmox VE 9.2 has them. A schema has the form that inline ones have in the facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["PROPERTY_FORMATS"]

Schema = Mapping[str, Mapping[str, Any]]


def _boolean(**more: Any) -> Mapping[str, Any]:
    return {"type": "boolean", "optional": 1, **more}


def _text(**more: Any) -> Mapping[str, Any]:
    return {"type": "string", "optional": 1, **more}


def _integer(**more: Any) -> Mapping[str, Any]:
    return {"type": "integer", "optional": 1, **more}


_PCI = r"(?:[a-f0-9]{4,}:)?[a-f0-9]{2}:[a-f0-9]{2}(?:\.[a-f0-9])?"
_HEX_ID = r"0x[0-9a-fA-F]{4}"
_BASE64 = r"[A-Za-z0-9+\/]+={0,2}"
_FLAG = r"[+-][a-zA-Z0-9\-_.]+"
_KEEP = ("keep-last", "keep-hourly", "keep-daily", "keep-weekly", "keep-monthly", "keep-yearly")

PROPERTY_FORMATS: Mapping[str, Schema] = {
    "pve-qm-boot": {
        "legacy": _text(default_key=1, pattern="[acdn]{1,4}"),
        "order": _text(format="pve-qm-bootdev-list"),
    },
    "pve-qm-cicustom": {
        part: _text(format="pve-volume-id") for part in ("meta", "network", "user", "vendor")
    },
    "pve-qm-ipconfig": {
        "ip": _text(format="pve-ipv4-config"),
        "gw": _text(format="ipv4", requires="ip"),
        "ip6": _text(format="pve-ipv6-config"),
        "gw6": _text(format="ipv6", requires="ip6"),
    },
    "pve-qm-watchdog": {
        "model": _text(default_key=1, enum=["i6300esb", "ib700"]),
        "action": _text(enum=["reset", "shutdown", "poweroff", "pause", "debug", "none"]),
    },
    "pve-qm-rng": {
        "source": {"type": "string", "default_key": 1, "enum": ["/dev/urandom", "/dev/random", "/dev/hwrng"]},
        "max_bytes": _integer(),
        "period": _integer(),
    },
    "pve-qm-smbios1": {
        "uuid": _text(pattern=r"[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}"),
        **{
            key: _text(pattern=_BASE64)
            for key in ("version", "serial", "manufacturer", "product", "sku", "family")
        },
        "base64": _boolean(),
    },
    "pve-qm-hostpci": {
        "host": _text(default_key=1, pattern=f"{_PCI}(?:;{_PCI})*"),
        "mapping": _text(format="pve-configid"),
        "rombar": _boolean(),
        "romfile": _text(pattern="[^,;]+"),
        "pcie": _boolean(),
        "x-vga": _boolean(),
        "legacy-igd": _boolean(),
        "mdev": _text(pattern=r"[^/\.:]+"),
        "vendor-id": _text(pattern=_HEX_ID),
        "device-id": _text(pattern=_HEX_ID),
        "sub-vendor-id": _text(pattern=_HEX_ID),
        "sub-device-id": _text(pattern=_HEX_ID),
        "driver": _text(enum=["vfio", "keep"]),
    },
    "pve-vm-cpu-conf": {
        "cputype": _text(default_key=1),
        "reported-model": _text(),
        "hidden": _boolean(),
        "hv-vendor-id": _text(pattern="[a-zA-Z0-9]{1,12}"),
        "flags": _text(pattern=f"{_FLAG}(?:;{_FLAG})*"),
        "guest-phys-bits": _integer(minimum=32, maximum=64),
        "phys-bits": _text(format="pve-phys-bits"),
        "level": _integer(minimum=0, maximum=4294967295),
    },
    "pve-qemu-sev-fmt": {
        "type": {"type": "string", "default_key": 1, "enum": ["std", "es", "snp"]},
        "no-debug": _boolean(),
        "no-key-sharing": _boolean(),
        "allow-smt": _boolean(),
        "kernel-hashes": _boolean(),
    },
    "pve-qemu-tdx-fmt": {
        "type": {"type": "string", "default_key": 1, "enum": ["tdx"]},
        "attestation": _boolean(),
        "vsock-cid": _integer(minimum=2),
        "vsock-port": _integer(minimum=0),
    },
    "prune-backups": {"keep-all": _boolean(), **{key: _integer(minimum=0) for key in _KEEP}},
    "backup-fleecing": {"enabled": _boolean(default_key=1), "storage": _text(format="pve-storage-id")},
    "backup-performance": {
        "max-workers": _integer(minimum=1, maximum=256),
        "pbs-entries-max": _integer(minimum=1),
    },
    "realm-sync-options": {
        "scope": _text(enum=["users", "groups", "both"]),
        "remove-vanished": _text(
            pattern="(?:(?:(?:acl|properties|entry);)*(?:acl|properties|entry))|none",
        ),
        "full": _boolean(),
        "enable-new": _boolean(),
        "purge": _boolean(),
    },
    "pve-tfa-config": {
        "type": {"type": "string", "enum": ["yubico", "oath"]},
        "id": _text(),
        "key": _text(),
        "url": _text(),
        "digits": _integer(minimum=6, maximum=8),
        "step": _integer(minimum=10),
    },
    "pve-sdn-dhcp-range": {
        "start-address": {"type": "string", "format": "ip"},
        "end-address": {"type": "string", "format": "ip"},
    },
    "proxmox-remote": {
        "host": {"type": "string"},
        "port": _integer(),
        "apitoken": {"type": "string"},
        "fingerprint": _text(pattern="([A-Fa-f0-9]{2}:){31}[A-Fa-f0-9]{2}"),
    },
}
