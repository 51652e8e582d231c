"""What the guest's init is asked and what it answers: by the lab, and by programs in the guest."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Optional

from . import accounts, sudoers
from .skeleton import set_hostname

if TYPE_CHECKING:
    from .spawning import ProgramRequest

__all__ = ["answer", "answer_user", "refusal"]

_NO_LOGIN = ("/usr/sbin/nologin", "/sbin/nologin", "/bin/false", "/usr/bin/false")
_MOST_KEYS_BYTES = 256 * 1024


def answer(message: dict[str, Any]) -> Any:
    """Answer the lab."""
    user = str(message.get("user", ""))
    what = message.get("do")
    if what == "users":
        return [one.name for one in accounts.users() if one.shell not in _NO_LOGIN]
    if what == "keys":
        return _authorized_keys(user)
    if what == "password":
        return _allows_password(user) and accounts.password_fits(user, str(message.get("password", "")))
    return None


def answer_user(uid: int, message: dict[str, Any]) -> Any:
    """Answer a program of the guest: whether a password is that of a user (for sudo, su)."""
    what = message.get("do")
    if what == "password":
        asked = accounts.find_user(str(message.get("user", "")))
        allowed = asked is not None and accounts.password_fits(asked.name, str(message.get("password", "")))
        return bool(allowed)
    if what == "hostname" and uid == 0:
        set_hostname(str(message.get("name", "")))
        return True
    if what == "sudo-rules":
        found = accounts.find_user(str(uid))
        return [] if found is None else [rule.format() for rule in sudoers.rules_of(found)]
    return None


def refusal(uid: int, wanted: ProgramRequest, message: dict[str, Any]) -> Optional[str]:
    """Say why someone may not run a program as someone else; None if that is allowed.

    `how` is `sudo` (the sudoers count, and the caller's password where they want one) or `su` (the password
    of the other user); root needs neither.
    """
    caller = accounts.find_user(str(uid))
    target = accounts.find_user(wanted.user)
    if target is None:
        return "unknown-user"
    if uid == 0:
        return None
    if caller is None:
        return "unknown-caller"
    password = message.get("password")
    if message.get("how") == "su":
        return (
            None
            if password is not None and accounts.password_fits(target.name, str(password))
            else "password"
        )
    rule = sudoers.find_rule(caller, target, wanted.argv or [])
    if rule is None:
        return "not-allowed"
    if rule.nopasswd:
        return None
    if password is None:
        return "password-needed"
    return None if accounts.password_fits(caller.name, str(password)) else "password"


def _authorized_keys(name: str) -> list[str]:
    user = accounts.find_user(name)
    if user is None or user.shell in _NO_LOGIN:
        return []
    with contextlib.suppress(OSError):
        descriptor = os.open(f"{user.home}/.ssh/authorized_keys", os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, encoding="utf-8", errors="replace") as stream:
            return [line for line in stream.read(_MOST_KEYS_BYTES).splitlines() if line.strip()]
    return []


def _allows_password(name: str) -> bool:
    """Read the configuration of sshd: the first word on a subject counts, drop-ins come before the rest."""
    said: dict[str, str] = {}
    folder = "/etc/ssh/sshd_config.d"
    names = []
    with contextlib.suppress(OSError):
        names = sorted(f"{folder}/{one}" for one in os.listdir(folder) if one.endswith(".conf"))
    for path in [*names, "/etc/ssh/sshd_config"]:
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                words = line.split()
                if len(words) >= 2 and not words[0].startswith("#"):
                    said.setdefault(words[0].lower(), words[1].lower())
    if name == "root" and said.get("permitrootlogin", "prohibit-password") != "yes":
        return False
    return said.get("passwordauthentication", "yes") == "yes"
