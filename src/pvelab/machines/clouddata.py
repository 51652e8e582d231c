"""What a guest's cloud-init drive says, taken apart: the guest itself reads JSON, and no YAML.

User and vendor data are a cloud-config, a script, or a MIME message of several of them, as cloud-init takes
them; a part that it would have to fetch from elsewhere is named as a problem, and so is one that cannot be
read. The guest writes problems into its own log.
"""

from __future__ import annotations

import email
import email.policy
import gzip
import hashlib
import re
import zlib
from typing import TYPE_CHECKING, Any

import yaml

from pvelab.api.nodes.qemu.userdata import render
from stackyard.base.documents.limits import SMALL
from stackyard.base.documents.yamltext import parse_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["cloud_data", "list_host_keys", "take_apart"]

_CLOUDINIT_DRIVE = re.compile(r"(?:ide|sata|scsi|virtio)\d+")
_MOST_UNPACKED = 16 * 2**20
_MIME_KINDS = {
    "text/cloud-config": "config",
    "text/x-shellscript": "script",
    "text/x-shellscript-per-boot": "script",
    "text/x-shellscript-per-instance": "script",
    "text/x-shellscript-per-once": "script",
    "text/cloud-boothook": "boothook",
    "text/x-include-url": "include",
    "text/x-include-once-url": "include",
    "text/jinja2": "jinja",
}


def cloud_data(world: World, guest: Document) -> dict[str, Any]:
    """Return what a guest gets from outside: by cloud-init, or by Proxmox if it is a container."""
    config, node, vmid = guest["config"], str(guest["node"]), int(guest["vmid"])
    if guest["type"] == "lxc":
        kept = world.store.get("guest_secrets", str(vmid)) or {}
        return {
            "kind": "container",
            "hostname": str(config.get("hostname", f"CT{vmid}")),
            "password": kept.get("password"),
            "keys": [line for line in str(kept.get("ssh-public-keys", "")).splitlines() if line.strip()],
        }
    drives = (str(value) for key, value in config.items() if _CLOUDINIT_DRIVE.fullmatch(key))
    if not any("cloudinit" in drive for drive in drives):
        return {"kind": "none"}
    texts = {part: _text(world, guest, part) for part in ("user", "vendor", "network", "meta")}
    meta = _mapping(texts["meta"])
    identity = hashlib.sha1(
        (str(texts["user"]) + str(texts["network"])).encode(), usedforsecurity=False
    ).hexdigest()
    return {
        "kind": "nocloud",
        "instance_id": str(meta.get("instance-id") or identity),
        "hostname": meta.get("local-hostname"),
        "user": take_apart(texts["user"] or b""),
        "vendor": take_apart(texts["vendor"] or b""),
        "user_text": (texts["user"] or b"").decode(errors="replace"),
        "network": (texts["network"] or b"").decode(errors="replace"),
        "node": node,
    }


def list_host_keys(cloud: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the private host keys that the user data has."""
    found = []
    for part in (cloud.get("user") or {}).get("parts", ()):
        if part["kind"] == "config" and isinstance(part["data"].get("ssh_keys"), dict):
            keys = part["data"]["ssh_keys"]
            found += [str(keys[name]) for name in sorted(keys) if name.endswith("_private")]
    return tuple(found)


def take_apart(data: bytes, name: str = "part-001") -> dict[str, Any]:
    """Return the parts of user data in their order, and what is wrong with it."""
    parts: list[dict[str, Any]] = []
    problems: list[str] = []
    _take(_unpack(data, problems), name, parts, problems)
    return {"parts": parts, "problems": problems}


def _take(data: bytes, name: str, parts: list[dict[str, Any]], problems: list[str]) -> None:
    text = data.decode(errors="replace")
    head = text.lstrip().partition("\n")[0].strip()
    if not text.strip():
        return
    if text.lower().startswith(("content-type:", "mime-version:")):
        _take_mime(data, parts, problems)
    elif head == "#cloud-config" or head.startswith("#cloud-config "):
        _take_config(text, parts, problems)
    elif head.startswith("#!"):
        parts.append({"kind": "script", "name": name, "text": text})
    elif head.startswith("#cloud-boothook"):
        parts.append({"kind": "boothook", "name": name, "text": text.partition("\n")[2]})
    elif head.startswith("#include"):
        problems.append("#include is not followed: a guest of the lab reaches nothing outside")
    elif head.startswith("## template: jinja"):
        problems.append("jinja templates in user data are not rendered by the lab")
    else:
        problems.append(f"Unhandled non-multipart (text/x-not-multipart) userdata: '{text[:24]!r}...'")


def _take_mime(data: bytes, parts: list[dict[str, Any]], problems: list[str]) -> None:
    message = email.message_from_bytes(data, policy=email.policy.default)
    for number, part in enumerate(message.walk()):
        if part.is_multipart():
            continue
        payload = part.get_payload(decode=True)
        content = _unpack(payload if isinstance(payload, bytes) else b"", problems)
        kind = _MIME_KINDS.get(part.get_content_type())
        name = part.get_filename() or f"part-{number:03d}"
        text = content.decode(errors="replace")
        if kind == "config":
            _take_config(text, parts, problems)
        elif kind in ("script", "boothook"):
            parts.append({"kind": kind, "name": name, "text": text})
        elif kind == "include":
            problems.append("#include is not followed: a guest of the lab reaches nothing outside")
        else:
            _take(content, name, parts, problems)


def _take_config(text: str, parts: list[dict[str, Any]], problems: list[str]) -> None:
    try:
        document = parse_yaml(text, SMALL)
    except yaml.YAMLError as err:
        problems.append(f"Failed loading yaml blob. Invalid format: {' '.join(str(err).split())}")
        return
    if document is None:
        return
    if not isinstance(document, dict):
        problems.append(
            f"Failed loading yaml blob. Yaml load allows (dict,) root types, but got {type(document)}"
        )
        return
    parts.append({"kind": "config", "data": _plain(document)})


def _plain(value: Any) -> Any:
    """Return a value as JSON can have it: YAML knows dates, bytes and keys of any kind."""
    match value:
        case dict():
            return {str(key): _plain(one) for key, one in value.items()}
        case list() | tuple() | set():
            return [_plain(one) for one in value]
        case bytes():
            return value.decode(errors="replace")
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)


def _unpack(data: bytes, problems: list[str]) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        return unpacking.decompress(data, _MOST_UNPACKED)
    except (zlib.error, gzip.BadGzipFile) as err:
        problems.append(f"user data cannot be unpacked: {err}")
        return b""


def _text(world: World, guest: Document, part: str) -> bytes | None:
    """Return one part of the drive: a snippet, or what Proxmox writes."""
    config, node = guest["config"], str(guest["node"])
    custom = dict(one.partition("=")[::2] for one in str(config.get("cicustom", "")).split(",") if one)
    if part in custom:
        volume = world.volumes.find(custom[part], node)
        if volume is not None and "sha256" in volume:
            return world.blobs.read(str(volume["sha256"]))
    if part == "vendor":
        return None
    return render(world, node, int(guest["vmid"]), config, part=part, masked=False).encode()


def _mapping(text: bytes | None) -> Mapping[str, Any]:
    try:
        found = parse_yaml(text or b"", SMALL)
    except yaml.YAMLError:
        return {}
    return found if isinstance(found, dict) else {}
