"""Who can log in to a guest: the users that cloud-init makes in a VM, and root of a container.

What cloud-init does with `user`, `users`, `password`, `chpasswd` and `ssh_authorized_keys` is followed, for
the user data that Proxmox writes and for that of a snippet (`cicustom`). A VM without cloud-init lets no one
in.
"""

from __future__ import annotations

import dataclasses
import hmac
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from pvelab.api.nodes.qemu.userdata import render
from pvelab.world.access.sha256_crypt import is_hashed, verify_password
from stackyard.base.documents.limits import SMALL
from stackyard.base.documents.yamltext import parse_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["Account", "accounts_of"]

# The user of Debian's cloud images, which the guests of the lab say they are.
DEFAULT_USER = "debian"
_CLOUDINIT_DRIVE = re.compile(r"(?:ide|sata|scsi|virtio)\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user of a guest; a password may be a hash."""

    name: str
    password: str | None = None
    keys: tuple[str, ...] = ()

    def fits(self, password: str) -> bool:
        """Return whether a password is this user's."""
        if not self.password:
            return False
        if is_hashed(self.password):
            return verify_password(password, self.password)
        return hmac.compare_digest(self.password.encode(), password.encode())


def accounts_of(world: World, guest: Document) -> dict[str, Account]:
    """Return the users of a guest by name."""
    if guest["type"] == "lxc":
        kept = world.store.get("guest_secrets", str(guest["vmid"])) or {}
        keys = _key_lines(str(kept.get("ssh-public-keys", "")))
        return {"root": Account(name="root", password=kept.get("password"), keys=keys)}
    config = guest["config"]
    drives = (str(value) for key, value in config.items() if _CLOUDINIT_DRIVE.fullmatch(key))
    if not any("cloudinit" in drive for drive in drives):
        return {}
    custom = dict(part.partition("=")[::2] for part in str(config.get("cicustom", "")).split(",") if part)
    node = str(guest["node"])
    text = _snippet(world, node, custom["user"]) if "user" in custom else None
    if text is None:
        text = render(world, node, int(guest["vmid"]), config, part="user", masked=False)
    vendor = _cloud_config(_snippet(world, node, custom["vendor"]) or "") if "vendor" in custom else {}
    config_data = {**vendor, **_cloud_config(text)}
    found = _users(config_data)
    if str(config_data.get("ssh_pwauth", True)).lower() in ("false", "no", "0", "off"):
        # The passwords are there, but no server takes them.
        return {name: dataclasses.replace(account, password=None) for name, account in found.items()}
    return found


def _snippet(world: World, node: str, volid: str) -> str | None:
    volume = world.volumes.find(volid, node)
    if volume is None or "sha256" not in volume:
        return None
    return world.blobs.read(str(volume["sha256"])).decode(errors="replace")


def _cloud_config(text: str) -> Mapping[str, Any]:
    if not text.startswith("#cloud-config"):
        return {}
    try:
        document = parse_yaml(text, SMALL)
    except yaml.YAMLError:
        # Cloud-init says so in its log, and makes no users.
        return {}
    return document if isinstance(document, dict) else {}


def _users(config: Mapping[str, Any]) -> dict[str, Account]:
    found: dict[str, Account] = {}
    passwords = _parse_chpasswd(config.get("chpasswd"))
    first = _entry(config.get("user"), DEFAULT_USER)
    for listed in _list(config.get("users", ["default"])):
        is_default = listed == "default"
        entry = first if is_default else _entry(listed, "")
        name = str(entry.get("name", ""))
        if not name:
            continue
        password = entry.get("plain_text_passwd") or entry.get("hashed_passwd") or entry.get("passwd")
        keys = [str(key) for key in _list(entry.get("ssh_authorized_keys", []))]
        if is_default:
            password = config.get("password", password)
            keys += [str(key) for key in _list(config.get("ssh_authorized_keys", []))]
        password = passwords.get(name, password)
        found[name] = Account(
            name=name, password=None if password is None else str(password), keys=tuple(keys)
        )
    # With `user: root` and no list, or a list without the default user, these still go to someone.
    if "users" not in config and first["name"] not in found:
        found[first["name"]] = Account(name=first["name"])
    for name, password in passwords.items():
        found.setdefault(name, Account(name=name, password=password))
    return found


def _entry(value: Any, name: str) -> dict[str, Any]:
    if isinstance(value, dict):
        # Cloud-init takes the names of a user's options with dashes as well.
        return {"name": name, **{str(key).replace("-", "_"): one for key, one in value.items()}}
    return {"name": str(value) if value else name}


def _parse_chpasswd(value: Any) -> dict[str, str]:
    """Read `chpasswd`, in its older form (lines) and its newer one (objects)."""
    if not isinstance(value, dict):
        return {}
    listed = value.get("list", [])
    lines = listed.splitlines() if isinstance(listed, str) else _list(listed)
    found = dict(str(line).partition(":")[::2] for line in lines if ":" in str(line))
    for user in _list(value.get("users", [])):
        if isinstance(user, dict) and "name" in user and user.get("type") != "RANDOM":
            found[str(user["name"])] = str(user.get("password", ""))
    return found


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _key_lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())
