"""`dpkg`, `dpkg-query` and what configures packages."""

from __future__ import annotations

import fnmatch
import re
import sys
from typing import Any, Callable

from . import packages

__all__ = ["run"]

_OPERATORS: dict[str, tuple[int, ...]] = {
    "lt": (-1,),
    "le": (-1, 0),
    "eq": (0,),
    "ne": (-1, 1),
    "ge": (0, 1),
    "gt": (1,),
    "<<": (-1,),
    "<=": (-1, 0),
    "=": (0,),
    ">=": (0, 1),
    ">>": (1,),
    "<": (-1, 0),
    ">": (0, 1),
}
_NOTHING = ("--audit", "-C", "--configure", "-a", "--verify", "-V", "--print-foreign-architectures")
_HEAD = """Desired=Unknown/Install/Remove/Purge/Hold
| Status=Not/Inst/Conf-files/Unpacked/halF-conf/Half-inst/trig-aWait/Trig-pend
|/ Err?=(none)/Reinst-required (Status,Err: uppercase=bad)
||/ Name           Version      Architecture Description
+++-==============-============-============-================================="""


def run(name: str, words: list[str]) -> int:
    """Do one of the verbs."""
    if name in ("dpkg-reconfigure", "debconf-set-selections"):
        if name == "debconf-set-selections" and not words:
            sys.stdin.read()
        return 0
    if name == "update-alternatives":
        return 0
    form = "${binary:Package}\t${Version}\n"
    rest: list[str] = []
    verb = ""
    waiting = iter(words)
    for word in waiting:
        if word in ("-f", "--showformat"):
            form = next(waiting, form)
        elif word.startswith("--showformat="):
            form = word.partition("=")[2]
        elif word.startswith("-f") and len(word) > 2:
            form = word[2:].removeprefix("=")
        elif word.startswith("-") and not verb and word not in ("--no-pager", "--admindir"):
            verb = word
        elif not word.startswith("-"):
            rest.append(word)
    return _act(verb, rest, form)


def _act(verb: str, rest: list[str], form: str) -> int:
    asked: dict[str, Callable[[list[str]], int]] = {
        "-l": _list,
        "--list": _list,
        "-s": _status,
        "--status": _status,
        "-L": _files,
        "--listfiles": _files,
        "-S": _search,
        "--search": _search,
        "--get-selections": _selections,
        "--set-selections": _select,
    }
    if verb in asked:
        return asked[verb](rest)
    if verb in ("-W", "--show"):
        return _show(rest, form)
    if verb == "--compare-versions":
        found = packages.compare_versions(rest[0], rest[2])
        return 0 if (found > 0) - (found < 0) in _OPERATORS.get(rest[1], ()) else 1
    if verb in _NOTHING:
        return 0
    texts = {
        "--print-architecture": "amd64",
        "--version": "Debian 'dpkg' package management program version 1.21.22 (amd64).",
    }
    if verb not in texts:
        what = verb or " ".join(rest)
        sys.stderr.write(f"dpkg: error: the lab's dpkg does not have '{what}': use apt-get\n")
        return 2
    print(texts[verb])
    return 0


def _selections(_rest: list[str]) -> int:
    for name, record in sorted(packages.list_installed().items()):
        wish = "hold" if record.get("held") else "install" if record["state"] == "ii" else "deinstall"
        print(f"{name}\t\t\t\t{wish}")
    return 0


def _select(_rest: list[str]) -> int:
    for line in sys.stdin.read().splitlines():
        words = line.split()
        if len(words) == 2:
            packages.set_flags([words[0]], held=words[1] == "hold")
    return 0


def _match_packages(patterns: list[str]) -> list[tuple[str, dict[str, Any]]]:
    have = packages.list_installed()
    if not patterns:
        return sorted(have.items())
    found: dict[str, dict[str, Any]] = {}
    for pattern in patterns:
        plain = pattern.partition(":")[0]
        found.update({name: have[name] for name in have if fnmatch.fnmatchcase(name, plain)})
    return sorted(found.items())


def _missing(patterns: list[str]) -> list[str]:
    have = packages.list_installed()
    return [one for one in patterns if not fnmatch.filter(have, one.partition(":")[0])]


def _list(patterns: list[str]) -> int:
    rows = _match_packages(patterns)
    if rows:
        print(_HEAD)
    known = packages.catalogue()
    for name, record in rows:
        state = ("h" if record.get("held") else record["state"][0]) + record["state"][1]
        one = known.get(name)
        print(
            f"{state}  {name:<14} {record['version']:<12}"
            f" {one.architecture if one else 'amd64':<12} {one.summary if one else ''}"
        )
    for name in _missing(patterns):
        sys.stderr.write(f"dpkg-query: no packages found matching {name}\n")
    return 1 if _missing(patterns) else 0


def _status(names: list[str]) -> int:
    have, known = packages.list_installed(), packages.catalogue()
    if not names:
        with open("/var/lib/dpkg/status", encoding="utf-8") as stream:
            sys.stdout.write(stream.read())
        return 0
    status = 0
    for word in names:
        name = word.partition(":")[0]
        if name not in have:
            sys.stderr.write(
                f"dpkg-query: package '{name}' is not installed and no information is available\n"
            )
            sys.stderr.write("Use dpkg --info (= dpkg-deb --info) to examine archive files.\n")
            status = 1
        else:
            print(packages.stanza(name, have[name], known.get(name)))
    return status


def _show(patterns: list[str], form: str) -> int:
    known = packages.catalogue()
    for name, record in _match_packages(patterns):
        one = known.get(name)
        text = packages.stanza(name, record, one)
        fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
        wish, _, state = fields["Status"].split(" ", 2)
        fields |= {
            "binary:Package": name,
            "db:Status-Abbrev": f"{record['state']} ",
            "db:Status-Status": state,
            "db:Status-Want": wish,
            "binary:Summary": fields["Description"],
            "source:Package": name,
            "source:Version": str(record["version"]),
            "Essential": "no",
        }
        sys.stdout.write(_fill_form(form, fields))
    for name in _missing(patterns):
        sys.stderr.write(f"dpkg-query: no packages found matching {name}\n")
    return 1 if _missing(patterns) else 0


def _fill_form(form: str, fields: dict[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        width = int(found[2] or 0)
        text = fields.get(found[1], "")
        return text.ljust(-width) if width < 0 else text.rjust(width)

    text = re.sub(r"\$\{([^;}]+)(?:;(-?\d+))?\}", value, form)
    return text.replace("\\n", "\n").replace("\\t", "\t")


def _files(names: list[str]) -> int:
    have = packages.list_installed()
    for name in names:
        if not packages.is_there(have, name):
            sys.stderr.write(f"dpkg-query: package '{name}' is not installed\n")
            return 1
        print("\n".join(packages.files_of(name)))
    return 0


def _search(patterns: list[str]) -> int:
    have = packages.list_installed()
    hits = 0
    for pattern in patterns:
        for name in have:
            for path in packages.files_of(name) if packages.is_there(have, name) else ():
                if path not in ("/.", "/usr", "/usr/share", "/usr/share/doc") and (
                    pattern == path or (not pattern.startswith("/") and pattern in path)
                ):
                    print(f"{name}: {path}")
                    hits += 1
    if not hits:
        sys.stderr.write(f"dpkg-query: no path found matching pattern {' '.join(patterns)}\n")
    return 0 if hits else 1
