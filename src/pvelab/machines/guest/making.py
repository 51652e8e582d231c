"""Making users and groups: what `useradd` and cloud-init have in common."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from typing import NamedTuple, Optional

from . import accounts
from .accounts import Group, User

__all__ = [
    "NewUser",
    "Refused",
    "add_group",
    "add_user",
    "gid_of",
    "make_home",
    "own",
    "set_groups",
    "set_password",
]

_FIRST = 1000
_NAME_TAKEN, _NOT_FOUND, _ID_TAKEN = 9, 6, 4


class Refused(Exception):
    """A change that is refused, with the exit status of the real program."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


def add_group(name: str, gid: Optional[int] = None, *, system: bool = False) -> int:
    """Add a group and return its number."""
    found = accounts.groups()
    if any(one.name == name for one in found):
        raise Refused(f"group '{name}' already exists", _NAME_TAKEN)
    taken = {one.gid for one in found}
    if gid is not None and gid in taken:
        raise Refused(f"GID '{gid}' already exists", _ID_TAKEN)
    number = gid if gid is not None else _free(taken, system=system)
    accounts.save_groups([*found, Group(name, number, [])])
    return number


class NewUser(NamedTuple):
    """A user who is to be created; with a group of the same name if none is given."""

    name: str
    uid: Optional[int] = None
    group: Optional[str] = None
    home: Optional[str] = None
    shell: str = "/bin/sh"
    comment: str = ""
    system: bool = False
    makes_home: bool = False


def add_user(new: NewUser) -> User:
    """Add a user."""
    found = accounts.users()
    if any(one.name == new.name for one in found):
        raise Refused(f"user '{new.name}' already exists", _NAME_TAKEN)
    taken = {one.uid for one in found}
    if new.uid is not None and new.uid in taken:
        raise Refused(f"UID {new.uid} is not unique", _ID_TAKEN)
    number = new.uid if new.uid is not None else _free(taken, system=new.system)
    if new.group is None:
        if any(one.name == new.name for one in accounts.groups()):
            text = f"group {new.name} exists - if you want to add this user to that group, use -g."
            raise Refused(text, _NAME_TAKEN)
        free = number if number not in {one.gid for one in accounts.groups()} else None
        gid = add_group(new.name, free, system=new.system)
    else:
        gid = gid_of(new.group)
    user = User(new.name, number, gid, new.comment, new.home or f"/home/{new.name}", new.shell)
    accounts.save_users([*found, user])
    accounts.save_shadow({**accounts.shadow(), new.name: accounts.new_shadow()})
    if new.makes_home:
        make_home(user)
    return user


def make_home(user: User) -> None:
    """Make the home of a user from the skeleton."""
    if os.path.isdir(user.home):
        return
    os.makedirs(os.path.dirname(user.home.rstrip("/")) or "/", exist_ok=True)
    shutil.copytree("/etc/skel", user.home) if os.path.isdir("/etc/skel") else os.mkdir(user.home)
    os.chmod(user.home, 0o755)
    for folder, folders, files in os.walk(user.home):
        for path in (folder, *(os.path.join(folder, one) for one in [*folders, *files])):
            own(path, user.uid, user.gid)


def own(path: str, uid: int, gid: int) -> None:
    """Give a file to someone, where the sandbox has such numbers."""
    with contextlib.suppress(OSError):
        os.lchown(path, uid, gid)


def set_password(name: str, hashed: str) -> None:
    """Set what the shadow file has of a password."""
    found = accounts.shadow()
    fields = found.get(name, accounts.new_shadow())
    fields[0] = hashed
    fields[1] = str(int(time.time() // 86400))
    accounts.save_shadow({**found, name: fields})


def set_groups(name: str, wanted: list[str], *, append: bool) -> None:
    """Make a user a member of groups, and of no others unless appended."""
    for one in wanted:
        gid_of(one)
    numbers = {gid_of(one) for one in wanted}
    changed = []
    for group in accounts.groups():
        members = list(group.members)
        if group.gid in numbers and name not in members:
            members.append(name)
        elif group.gid not in numbers and name in members and not append:
            members.remove(name)
        changed.append(group._replace(members=members))
    accounts.save_groups(changed)


def _free(taken: set[int], *, system: bool) -> int:
    if system:
        return next(number for number in range(997, 100, -1) if number not in taken)
    return next(number for number in range(_FIRST, 60000) if number not in taken)


def gid_of(text: str) -> int:
    """Return the number of a group that is given by name or number."""
    for one in accounts.groups():
        if one.name == text or (text.isdigit() and one.gid == int(text)):
            return one.gid
    raise Refused(f"group '{text}' does not exist", _NOT_FOUND)
