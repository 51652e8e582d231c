"""The users and groups of a guest, in the files where Debian keeps them."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import secrets
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Group",
    "User",
    "find_user",
    "groups",
    "groups_of",
    "hash_password",
    "lock_records",
    "password_fits",
    "replace_file",
    "save_groups",
    "save_shadow",
    "save_users",
    "shadow",
    "users",
]

_SALT = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./"


class User(NamedTuple):
    """A line of /etc/passwd."""

    name: str
    uid: int
    gid: int
    comment: str
    home: str
    shell: str


class Group(NamedTuple):
    """A line of /etc/group."""

    name: str
    gid: int
    members: list[str]


@contextlib.contextmanager
def lock_records(name: str = "accounts") -> Iterator[None]:
    """Keep others from changing the same records for the length of the block."""
    folder = "/var/lib/stackyard-lab"
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/{name}.lock", "w", encoding="ascii") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def replace_file(path: str, text: str, mode: int = 0o644) -> None:
    """Write a file so that others see the old or the new one, never half of it."""
    scratch = f"{path}.{os.getpid()}.new"
    with open(scratch, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.chmod(scratch, mode)
    os.replace(scratch, path)


def users() -> list[User]:
    """Return all users."""
    found = []
    for fields in _rows("/etc/passwd", 7):
        with contextlib.suppress(ValueError):
            found.append(User(fields[0], int(fields[2]), int(fields[3]), fields[4], fields[5], fields[6]))
    return found


def find_user(name: str) -> User | None:
    """Return a user by name, or by number."""
    found = users()
    by_name = next((user for user in found if user.name == name), None)
    if by_name is not None or not name.isdigit():
        return by_name
    return next((user for user in found if user.uid == int(name)), None)


def groups() -> list[Group]:
    """Return all groups."""
    found = []
    for fields in _rows("/etc/group", 4):
        with contextlib.suppress(ValueError):
            found.append(Group(fields[0], int(fields[2]), [one for one in fields[3].split(",") if one]))
    return found


def groups_of(user: User) -> list[int]:
    """Return the numbers of a user's groups, the first one first."""
    return [user.gid, *(one.gid for one in groups() if user.name in one.members and one.gid != user.gid)]


def shadow() -> dict[str, list[str]]:
    """Return the fields after the name, by name; empty for those who may not read them."""
    with contextlib.suppress(PermissionError):
        return {fields[0]: fields[1:] for fields in _rows("/etc/shadow", 9)}
    return {}


def save_users(found: list[User]) -> None:
    """Write /etc/passwd."""
    lines = [":".join([u.name, "x", str(u.uid), str(u.gid), u.comment, u.home, u.shell]) for u in found]
    replace_file("/etc/passwd", "".join(f"{line}\n" for line in lines))


def save_groups(found: list[Group]) -> None:
    """Write /etc/group."""
    lines = [f"{one.name}:x:{one.gid}:{','.join(one.members)}" for one in found]
    replace_file("/etc/group", "".join(f"{line}\n" for line in lines))


def save_shadow(found: dict[str, list[str]]) -> None:
    """Write /etc/shadow."""
    lines = [":".join([name, *fields]) for name, fields in found.items()]
    replace_file("/etc/shadow", "".join(f"{line}\n" for line in lines), 0o640)


def new_shadow(password: str = "!") -> list[str]:  # noqa: S107 - it means none
    """Return the fields of a user who is new."""
    return [password, str(int(time.time() // 86400)), "0", "99999", "7", "", "", ""]


def hash_password(password: str) -> str:
    """Return what /etc/shadow holds of a password."""
    salt = "".join(secrets.choice(_SALT) for _ in range(16))
    return _crypt(password, f"$6${salt}$")


def password_fits(name: str, password: str) -> bool:
    """Return whether a password is the user's."""
    kept = shadow().get(name, ["!"])[0]
    if not kept or kept[0] in "!*":
        return False
    return secrets.compare_digest(_crypt(password, kept), kept)


def _crypt(password: str, setting: str) -> str:
    library = ctypes.CDLL("libcrypt.so.1")
    library.crypt.restype = ctypes.c_char_p
    found = library.crypt(password.encode(), setting.encode())
    return "*" if found is None else str(found.decode())


def _rows(path: str, count: int) -> Iterator[list[str]]:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            lines = stream.read().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        fields = line.split(":")
        if len(fields) == count:
            yield fields
