"""Users, groups, keys and passwords, as cloud-init makes them."""

from __future__ import annotations

import contextlib
import os
import secrets
import string
from typing import TYPE_CHECKING, Any

from . import accounts, making
from .accounts import replace_file

if TYPE_CHECKING:
    from .cloudlog import Journal

__all__ = ["give_keys", "give_password", "set_passwords", "ssh", "users_and_groups"]

Config = dict[str, Any]
DEFAULT_USER = "debian"
_DEFAULT_GROUPS = "adm audio cdrom dialout dip floppy netdev plugdev sudo video".split()
_SUDOERS = "/etc/sudoers.d/90-cloud-init-users"


def users_and_groups(config: Config, journal: Journal) -> None:
    """Make the groups and the users that are listed; the default user where nothing is."""
    for name, members in _groups(config.get("groups")):
        with accounts.lock_records():
            if not any(one.name == name for one in accounts.groups()):
                making.add_group(name)
            for member in members:
                if accounts.find_user(member) is not None:
                    making.set_groups(member, [name], append=True)
    for entry in _entries(config):
        try:
            with accounts.lock_records():
                _make(entry, journal)
        except making.Refused as err:
            journal.warn("__init__.py", f"Failed to create user {entry.get('name')}: {err}")


def ssh(config: Config, journal: Journal) -> None:
    """Install keys, and set how root may log in."""
    keys = [str(key) for key in _list(config.get("ssh_authorized_keys"))]
    name = _default_name(config)
    with accounts.lock_records():
        if name and keys:
            give_keys(name, keys)
    found = config.get("ssh_keys")
    if isinstance(found, dict):
        for key, text in found.items():
            kind, _, part = str(key).rpartition("_")
            if part in ("private", "public") and kind:
                path = f"/etc/ssh/ssh_host_{kind}_key" + (".pub" if part == "public" else "")
                replace_file(path, f"{str(text).rstrip()}\n", 0o600 if part == "private" else 0o644)
    journal.debug("cc_ssh.py", f"keys of {name or 'nobody'}: {len(keys)}")


def set_passwords(config: Config, journal: Journal) -> None:
    """Set passwords, and whether sshd takes them."""
    found: dict[str, tuple[str, bool]] = {}
    name = _default_name(config)
    if config.get("password") is not None and name:
        found[name] = (str(config["password"]), False)
    chpasswd = config.get("chpasswd")
    if isinstance(chpasswd, dict):
        listed = chpasswd.get("list", [])
        lines = listed.splitlines() if isinstance(listed, str) else [str(one) for one in _list(listed)]
        for line in lines:
            user, colon, password = line.partition(":")
            if colon:
                found[user.strip()] = (password, password in ("R", "RANDOM"))
        for one in _list(chpasswd.get("users")):
            if isinstance(one, dict) and "name" in one:
                found[str(one["name"])] = (str(one.get("password", "")), one.get("type") == "RANDOM")
    for user, (password, is_random) in found.items():
        if accounts.find_user(user) is None:
            journal.warn("cc_set_passwords.py", f"Failed to set passwords: user '{user}' does not exist")
            continue
        if is_random:
            password = "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(20))
            journal.say(f"Set the following 'random' passwords\n{user}:{password}")
        with accounts.lock_records():
            give_password(user, password)
    allows = config.get("ssh_pwauth")
    if allows is not None and str(allows).lower() != "unchanged":
        yes = "yes" if str(allows).lower() in ("true", "1", "yes", "on") else "no"
        replace_file("/etc/ssh/sshd_config.d/50-cloud-init.conf", f"PasswordAuthentication {yes}\n", 0o600)
    if "root" in found and str(config.get("disable_root", True)).lower() in ("false", "0", "no"):
        replace_file("/etc/ssh/sshd_config.d/60-root.conf", "PermitRootLogin yes\n", 0o600)


def give_password(name: str, password: str) -> None:
    """Set a password, which may be a hash already."""
    is_hash = password.startswith("$") and password.count("$") >= 3
    making.set_password(name, password if is_hash else accounts.hash_password(password))


def give_keys(name: str, keys: list[str]) -> None:
    """Add keys to those that a user can log in with."""
    user = accounts.find_user(name)
    if user is None or not keys:
        return
    folder = f"{user.home}/.ssh"
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o700)
    path = f"{folder}/authorized_keys"
    have: list[str] = []
    with contextlib.suppress(OSError), open(path, encoding="utf-8") as stream:
        have = stream.read().splitlines()
    lines = [*have, *(key.strip() for key in keys if key.strip() not in have)]
    replace_file(path, "".join(f"{line}\n" for line in lines), 0o600)
    for one in (folder, path):
        making.own(one, user.uid, user.gid)


def _entries(config: Config) -> list[Config]:
    """Return the users to make, the default one with all that it has."""
    default = _as_entry(config.get("user"), DEFAULT_USER)
    whole: Config = {
        "gecos": "Debian",
        "groups": list(_DEFAULT_GROUPS),
        "shell": "/bin/bash",
        "lock_passwd": True,
    }
    whole["sudo"] = ["ALL=(ALL) NOPASSWD:ALL"]
    found = []
    for listed in _list(config.get("users", ["default"])):
        if listed == "default":
            found.append({**whole, **default})
        elif isinstance(listed, dict):
            found.append(_with_underscores(listed))
        else:
            found += [{"name": name.strip()} for name in str(listed).split(",") if name.strip()]
    # `user: root` without a list still means someone.
    if "users" not in config and not any(one.get("name") == default["name"] for one in found):
        found.append(default)
    return found


def _default_name(config: Config) -> str:
    listed = _list(config.get("users", ["default"]))
    name = str(_as_entry(config.get("user"), DEFAULT_USER)["name"])
    if "default" in listed or name == "root":
        return name
    first = next((one for one in listed if isinstance(one, dict) and one.get("name")), None)
    # Without the default user, what is meant for it goes to the first one that is listed.
    return str(first["name"]) if first else ""


def _make(entry: Config, journal: Journal) -> None:
    name = str(entry.get("name") or "")
    if not name:
        journal.warn("cc_users_groups.py", "a user without a name is left out")
        return
    if accounts.find_user(name) is None:
        uid = entry.get("uid")
        group = entry.get("primary_group")
        if group and not any(one.name == group for one in accounts.groups()):
            making.add_group(str(group))
        if group is None and entry.get("no_user_group"):
            group = "users"
        system = bool(entry.get("system"))
        making.add_user(
            making.NewUser(
                name,
                uid=None if uid is None else int(uid),
                group=None if group is None else str(group),
                home=entry.get("homedir"),
                shell=str(entry.get("shell") or ("/usr/sbin/nologin" if system else "/bin/bash")),
                comment=str(entry.get("gecos") or ""),
                system=system,
                makes_home=not (system or entry.get("no_create_home")),
            )
        )
    _give_groups(name, entry.get("groups"))
    _give_sudo(name, entry.get("sudo"))
    plain = entry.get("plain_text_passwd")
    hashed = entry.get("hashed_passwd") or entry.get("passwd")
    if plain is not None or hashed is not None:
        secret = accounts.hash_password(str(plain)) if plain is not None else str(hashed)
        locked = entry.get("lock_passwd", True) and plain is None and entry.get("lock_passwd") is not False
        making.set_password(name, f"!{secret}" if locked and entry.get("lock_passwd") else secret)
    give_keys(name, [str(key) for key in _list(entry.get("ssh_authorized_keys"))])
    for unknown in ("ssh_import_id",):
        if entry.get(unknown):
            journal.warn(
                "cc_ssh_import_id.py", f"{unknown} of {name} is left out: a guest of the lab reaches nothing"
            )


def _give_groups(name: str, wanted: Any) -> None:
    listed = (
        wanted.split(",")
        if isinstance(wanted, str)
        else list(wanted)
        if isinstance(wanted, (list, dict))
        else []
    )
    names = [str(one).strip() for one in listed if str(one).strip()]
    have = {one.name for one in accounts.groups()}
    for one in names:
        if one not in have:
            making.add_group(one)
    if names:
        making.set_groups(name, names, append=True)


def _give_sudo(name: str, wanted: Any) -> None:
    if not wanted:
        return
    rules = [f"{name} {rule}" for rule in _list(wanted) if rule]
    text = ""
    with contextlib.suppress(OSError), open(_SUDOERS, encoding="utf-8") as stream:
        text = stream.read()
    new = [rule for rule in rules if rule not in text.splitlines()]
    if new:
        lines = "".join(f"{rule}\n" for rule in new)
        replace_file(_SUDOERS, f"{text}\n# User rules for {name}\n{lines}", 0o440)


def _groups(value: Any) -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    listed = (
        [value] if isinstance(value, dict) else value.split(",") if isinstance(value, str) else _list(value)
    )
    for one in listed:
        if isinstance(one, dict):
            found += [(str(name), [str(who) for who in _list(members)]) for name, members in one.items()]
        elif str(one).strip():
            found.append((str(one).strip(), []))
    return found


def _as_entry(value: Any, name: str) -> Config:
    if isinstance(value, dict):
        return {"name": name, **_with_underscores(value)}
    return {"name": str(value) if value else name}


def _with_underscores(entry: Config) -> Config:
    """Return the options of a user by the names that have no dashes: cloud-init takes either."""
    return {str(key).replace("-", "_"): value for key, value in entry.items()}


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
