"""Who may run what as whom: the part of sudoers that people write."""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING, NamedTuple, Optional

from . import accounts

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SudoRule", "find_rule", "rules_of"]

_RULE = re.compile(r"^(\S+)\s+(\S+?)\s*=\s*(?:\(([^)]*)\)\s*)?(.*)$")
_TAG = re.compile(r"^(NOPASSWD|PASSWD|SETENV|NOSETENV|EXEC|NOEXEC|LOG_\w+|NOLOG_\w+):\s*")


class SudoRule(NamedTuple):
    """One command, or all of them, that someone may run."""

    who: str
    as_users: list[str]
    command: str
    nopasswd: bool

    def format(self) -> str:
        """Return it as `sudo -l` lists it."""
        tag = "NOPASSWD: " if self.nopasswd else ""
        return f"({' : '.join(self.as_users)}) {tag}{self.command}"


def rules_of(user: accounts.User) -> list[SudoRule]:
    """Return the rules that count for a user, the last of which wins."""
    numbers = set(accounts.groups_of(user))
    names = {one.name for one in accounts.groups() if one.gid in numbers}
    found = []
    for rule in _rules():
        who = rule.who
        if who in ("ALL", user.name, f"#{user.uid}") or (who.startswith("%") and who[1:] in names):
            found.append(rule)
    return found


def find_rule(user: accounts.User, target: accounts.User, argv: list[str]) -> Optional[SudoRule]:
    """Return the rule that lets a user run a command as another, or None."""
    line = " ".join(argv)
    chosen = None
    for rule in rules_of(user):
        users = rule.as_users[0] if rule.as_users else "root"
        if not any(one.strip() in ("ALL", target.name) for one in users.split(",")):
            continue
        command = rule.command
        is_all = command == "ALL"
        program = bool(argv) and (command == argv[0] or command.rpartition("/")[2] == argv[0])
        if is_all or program or line == command or line.startswith(f"{command} "):
            chosen = rule
    return chosen


def _rules() -> Iterator[SudoRule]:
    for line in _lines("/etc/sudoers"):
        if line.startswith(("Defaults", "User_Alias", "Runas_Alias", "Cmnd_Alias", "Host_Alias")):
            continue
        found = _RULE.match(line)
        if found is None:
            continue
        who, _, runas, rest = found.groups()
        nopasswd = False
        for part in rest.split(","):
            command = part.strip()
            while tag := _TAG.match(command):
                if tag[1] in ("NOPASSWD", "PASSWD"):
                    nopasswd = tag[1] == "NOPASSWD"
                command = command[tag.end() :]
            as_users = [one.strip() for one in (runas or "root").split(":")]
            for name in who.split(","):
                yield SudoRule(name, as_users, command, nopasswd)


def _lines(path: str) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            text = stream.read().replace("\\\n", " ")
    except OSError:
        return
    for raw in text.splitlines():
        line = raw.strip()
        words = line.split()
        if len(words) == 2 and words[0] in ("@includedir", "#includedir"):
            with contextlib.suppress(OSError):
                for name in sorted(os.listdir(words[1])):
                    if "." not in name and not name.endswith("~"):
                        yield from _lines(os.path.join(words[1], name))
        elif line and not line.startswith("#"):
            yield line
