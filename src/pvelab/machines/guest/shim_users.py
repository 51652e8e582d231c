"""`useradd` and its kin: users, groups and passwords of the guest."""

from __future__ import annotations

import contextlib
import getopt
import os
import shutil
import sys
import time
from typing import TYPE_CHECKING, Callable

from . import accounts
from .making import NewUser, Refused, add_group, add_user, gid_of, set_groups, set_password

if TYPE_CHECKING:
    from .accounts import User

__all__ = ["run"]

_NOT_FOUND, _BAD_SYNTAX = 6, 2


def run(name: str, words: list[str]) -> int:
    """Do what was asked."""
    actions: dict[str, Callable[[list[str]], int]] = {
        "useradd": _useradd,
        "adduser": _adduser,
        "usermod": _usermod,
        "userdel": _userdel,
        "deluser": _userdel,
        "groupadd": _groupadd,
        "addgroup": _groupadd,
        "groupmod": _groupmod,
        "groupdel": _groupdel,
        "delgroup": _groupdel,
        "gpasswd": _gpasswd,
        "chpasswd": _chpasswd,
        "passwd": _passwd,
        "chage": _chage,
        "chsh": _chsh,
        "getent": _getent,
    }
    if name not in ("getent", "passwd", "chage") and os.geteuid() != 0:
        sys.stderr.write(f"{name}: Permission denied.\n{name}: cannot lock /etc/passwd; try again later.\n")
        return 1
    try:
        with (
            accounts.lock_records()
            if name not in ("getent",) and os.geteuid() == 0
            else contextlib.nullcontext()
        ):
            return actions[name](words)
    except Refused as err:
        sys.stderr.write(f"{name}: {err}\n")
        return err.status
    except getopt.GetoptError as err:
        sys.stderr.write(f"{name}: {err}\n")
        return _BAD_SYNTAX


def _require(name: str) -> User:
    found = next((one for one in accounts.users() if one.name == name), None)
    if found is None:
        raise Refused(f"user '{name}' does not exist", _NOT_FOUND)
    return found


def _useradd(words: list[str]) -> int:
    long = (
        "comment= home-dir= home= base-dir= expiredate= inactive= gid= groups= skel= key= no-log-init"
        " create-home no-create-home no-user-group non-unique password= system root= shell= uid= user-group"
        " selinux-user= badname"
    ).split()
    given, rest = getopt.gnu_getopt(words, "b:c:d:e:f:g:G:k:K:lmMNop:rR:s:u:UZ:D", long)
    options = dict(given)
    if len(rest) != 1:
        raise Refused("a single user name is needed", _BAD_SYNTAX)
    shell = options.get("-s", options.get("--shell", "/bin/sh"))
    uid = options.get("-u", options.get("--uid"))
    base = options.get("-b", options.get("--base-dir", "/home"))
    system = bool({"-r", "--system"} & set(options))
    home = options.get("-d", options.get("--home-dir", options.get("--home", f"{base}/{rest[0]}")))
    group = options.get("-g", options.get("--gid"))
    if group is None and {"-N", "--no-user-group"} & set(options):
        group = "users"
    groups = options.get("-G", options.get("--groups", ""))
    for one in filter(None, groups.split(",")):
        gid_of(one)
    add_user(
        NewUser(
            rest[0],
            uid=None if uid is None else int(uid),
            group=group,
            home=home,
            shell=shell,
            comment=options.get("-c", options.get("--comment", "")),
            system=system,
            makes_home=bool({"-m", "--create-home"} & set(options)),
        )
    )
    if groups:
        set_groups(rest[0], [one for one in groups.split(",") if one], append=False)
    hashed = options.get("-p", options.get("--password"))
    if hashed is not None:
        set_password(rest[0], hashed)
    return 0


def _adduser(words: list[str]) -> int:
    long = (
        "home= shell= no-create-home uid= firstuid= lastuid= gecos= comment= ingroup= gid= disabled-password"
        " disabled-login system group quiet force-badname allow-bad-names add_extra_groups"
        " add-extra-groups debug"
    ).split()
    given, rest = getopt.gnu_getopt(words, "q", long)
    options = dict(given)
    if len(rest) == 2:
        _require(rest[0])
        set_groups(rest[0], [rest[1]], append=True)
        return 0
    if len(rest) != 1:
        raise Refused("only one or two names allowed.", 1)
    if "--group" in options and "--system" not in options:
        add_group(rest[0])
        return 0
    system = "--system" in options
    uid = options.get("--uid")
    add_user(
        NewUser(
            rest[0],
            uid=None if uid is None else int(uid),
            group=options.get(
                "--ingroup", options.get("--gid", "nogroup" if system and "--group" not in options else None)
            ),
            home=options.get("--home"),
            shell=options.get("--shell", "/usr/sbin/nologin" if system else "/bin/bash"),
            comment=options.get("--gecos", options.get("--comment", "")),
            system=system,
            makes_home="--no-create-home" not in options,
        )
    )
    return 0


def _usermod(words: list[str]) -> int:
    long = (
        "append badnames comment= home= expiredate= inactive= gid= groups= login= lock move-home non-unique"
        " password= remove root= prefix= shell= uid= unlock"
    ).split()
    given, rest = getopt.gnu_getopt(words, "abc:d:e:f:g:G:l:Lmop:rR:P:s:u:U", long)
    options = dict(given)
    if len(rest) != 1:
        raise Refused("a single user name is needed", _BAD_SYNTAX)
    user = _require(rest[0])
    groups = options.get("-G", options.get("--groups"))
    if groups is not None:
        append = bool({"-a", "--append"} & set(options))
        set_groups(user.name, [one for one in groups.split(",") if one], append=append)
    _change_password(user.name, options)
    return _change_user(user, options)


def _change_password(name: str, options: dict[str, str]) -> None:
    kept = accounts.shadow().get(name, accounts.new_shadow())[0]
    hashed = options.get("-p", options.get("--password"))
    if hashed is not None:
        set_password(name, hashed)
    elif {"-L", "--lock"} & set(options) and not kept.startswith("!"):
        set_password(name, f"!{kept}")
    elif {"-U", "--unlock"} & set(options) and kept.startswith("!") and len(kept) > 1:
        set_password(name, kept[1:])
    expires = options.get("-e", options.get("--expiredate"))
    if expires is not None:
        found = accounts.shadow()
        found[name][6] = expires
        accounts.save_shadow(found)


def _change_user(user: User, options: dict[str, str]) -> int:
    group = options.get("-g", options.get("--gid"))
    uid = options.get("-u", options.get("--uid"))
    new = user._replace(
        comment=options.get("-c", options.get("--comment", user.comment)),
        home=options.get("-d", options.get("--home", user.home)),
        shell=options.get("-s", options.get("--shell", user.shell)),
        gid=user.gid if group is None else gid_of(group),
        uid=user.uid if uid is None else int(uid),
        name=options.get("-l", options.get("--login", user.name)),
    )
    if new == user:
        return 0
    if {"-m", "--move-home"} & set(options) and os.path.isdir(user.home) and not os.path.exists(new.home):
        shutil.move(user.home, new.home)
    accounts.save_users([new if one.name == user.name else one for one in accounts.users()])
    if new.name != user.name:
        found = accounts.shadow()
        accounts.save_shadow({new.name if name == user.name else name: rest for name, rest in found.items()})
        renamed = [
            [new.name if one == user.name else one for one in group.members] for group in accounts.groups()
        ]
        accounts.save_groups([one._replace(members=m) for one, m in zip(accounts.groups(), renamed)])
    return 0


def _userdel(words: list[str]) -> int:
    given, rest = getopt.gnu_getopt(
        words, "frRZ", "force remove remove-home remove-all-files quiet system".split()
    )
    options = dict(given)
    if len(rest) == 2:
        found = [
            one._replace(members=[name for name in one.members if name != rest[0]])
            if one.name == rest[1]
            else one
            for one in accounts.groups()
        ]
        accounts.save_groups(found)
        return 0
    if len(rest) != 1:
        raise Refused("a single user name is needed", _BAD_SYNTAX)
    user = _require(rest[0])
    accounts.save_users([one for one in accounts.users() if one.name != user.name])
    kept = accounts.shadow()
    kept.pop(user.name, None)
    accounts.save_shadow(kept)
    groups = [
        one._replace(members=[name for name in one.members if name != user.name]) for one in accounts.groups()
    ]
    accounts.save_groups([one for one in groups if not (one.name == user.name and not one.members)])
    if {"-r", "--remove", "--remove-home", "--remove-all-files"} & set(options):
        shutil.rmtree(user.home, ignore_errors=True)
    return 0


def _groupadd(words: list[str]) -> int:
    given, rest = getopt.gnu_getopt(
        words, "fg:K:op:rU:", "force gid= system non-unique quiet group key=".split()
    )
    options = dict(given)
    if len(rest) == 2:
        return _adduser(rest)
    if len(rest) != 1:
        raise Refused("a single group name is needed", _BAD_SYNTAX)
    if {"-f", "--force"} & set(options) and any(one.name == rest[0] for one in accounts.groups()):
        return 0
    gid = options.get("-g", options.get("--gid"))
    add_group(rest[0], None if gid is None else int(gid), system=bool({"-r", "--system"} & set(options)))
    return 0


def _groupmod(words: list[str]) -> int:
    given, rest = getopt.gnu_getopt(words, "g:n:o", "gid= new-name= non-unique".split())
    options = dict(given)
    old = gid_of(rest[0])
    gid = options.get("-g", options.get("--gid"))
    name = options.get("-n", options.get("--new-name", rest[0]))
    new = [
        one._replace(name=name, gid=old if gid is None else int(gid)) if one.name == rest[0] else one
        for one in accounts.groups()
    ]
    accounts.save_groups(new)
    return 0


def _groupdel(words: list[str]) -> int:
    _, rest = getopt.gnu_getopt(words, "f", ["force", "only-if-empty"])
    gid = gid_of(rest[0])
    holder = next((one.name for one in accounts.users() if one.gid == gid), None)
    if holder is not None:
        raise Refused(f"cannot remove the primary group of user '{holder}'", 8)
    accounts.save_groups([one for one in accounts.groups() if one.name != rest[0]])
    return 0


def _gpasswd(words: list[str]) -> int:
    given, rest = getopt.gnu_getopt(words, "a:d:M:A:rR", "add= delete= members= administrators=".split())
    for option, value in given:
        changed = []
        for group in accounts.groups():
            members = list(group.members)
            if group.name == rest[0]:
                if option in ("-a", "--add") and value not in members:
                    _require(value)
                    members.append(value)
                elif option in ("-d", "--delete") and value in members:
                    members.remove(value)
                elif option in ("-M", "--members"):
                    members = [one for one in value.split(",") if one]
            changed.append(group._replace(members=members))
        gid_of(rest[0])
        accounts.save_groups(changed)
    return 0


def _chpasswd(words: list[str]) -> int:
    encrypted = "-e" in words or "--encrypted" in words
    for line in sys.stdin.read().splitlines():
        name, colon, password = line.partition(":")
        if colon:
            _require(name)
            set_password(name, password if encrypted else accounts.hash_password(password))
    return 0


def _passwd(words: list[str]) -> int:
    given, rest = getopt.gnu_getopt(
        words, "adehiklnqrSuwx", "delete expire lock unlock status stdin quiet".split()
    )
    options = set(dict(given))
    own_user = accounts.find_user(str(os.geteuid()))
    name = rest[0] if rest else (own_user.name if own_user else "root")
    if os.geteuid() != 0:
        raise Refused("Authentication token manipulation error", 10)
    _require(name)
    kept = accounts.shadow().get(name, accounts.new_shadow())[0]
    if options & {"-S", "--status"}:
        state = "L" if kept[:1] in ("!", "*") else "NP" if not kept else "P"
        print(f"{name} {state} {time.strftime('%m/%d/%Y')} 0 99999 7 -1")
    elif options & {"-l", "--lock"}:
        _change_password(name, {"-L": ""})
    elif options & {"-u", "--unlock"}:
        _change_password(name, {"-U": ""})
    elif options & {"-d", "--delete"}:
        set_password(name, "")
    elif options & {"-e", "--expire"}:
        pass
    else:
        lines = sys.stdin.read().splitlines()
        if not lines:
            raise Refused("Authentication token manipulation error", 10)
        set_password(name, accounts.hash_password(lines[0]))
        sys.stderr.write("passwd: password updated successfully\n")
    return 0


def _chage(words: list[str]) -> int:
    given, rest = getopt.gnu_getopt(
        words, "d:E:I:lm:M:W:", "list lastday= expiredate= maxdays= mindays=".split()
    )
    options = dict(given)
    user = _require(rest[0])
    found = accounts.shadow()
    fields = found.get(user.name, accounts.new_shadow())
    if {"-l", "--list"} & set(options):
        print(
            f"Last password change\t\t\t\t\t: {fields[1]}\n"
            f"Account expires\t\t\t\t\t\t: {fields[6] or 'never'}"
        )
        return 0
    for option, at in (("-d", 1), ("-m", 2), ("-M", 3), ("-W", 4), ("-I", 5), ("-E", 6)):
        if option in options:
            fields[at] = options[option]
    accounts.save_shadow({**found, user.name: fields})
    return 0


def _chsh(words: list[str]) -> int:
    given, rest = getopt.gnu_getopt(words, "s:", ["shell="])
    options = dict(given)
    return _change_user(
        _require(rest[0] if rest else "root"), {"-s": options.get("-s", options.get("--shell", "/bin/sh"))}
    )


def _getent(words: list[str]) -> int:
    if not words:
        return 1
    database, keys = words[0], words[1:]
    path = {
        "passwd": "/etc/passwd",
        "group": "/etc/group",
        "shadow": "/etc/shadow",
        "hosts": "/etc/hosts",
    }.get(database)
    if path is None:
        sys.stderr.write(f"Unknown database: {database}\n")
        return 1
    with open(path, encoding="utf-8", errors="replace") as stream:
        lines = [line for line in stream.read().splitlines() if line.strip() and not line.startswith("#")]
    if not keys:
        print("\n".join(lines))
        return 0
    status = 0
    for key in keys:
        if database == "hosts":
            hits = [line for line in lines if key in line.split()]
        else:
            hits = [line for line in lines if key in (line.split(":")[0], *line.split(":")[2:3])]
        if hits:
            print(hits[0])
        else:
            status = 2
    return status
