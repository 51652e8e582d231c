"""Reading a seed: every mistake found at once, nothing guessed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import orjson

from stackyard.diagnostics import Diagnostics, Kind
from stackyard.errors import InvalidInputError, Location
from stackyard.files import read_text

__all__ = [
    "EMPTY",
    "Seed",
    "SeedCall",
    "SeedError",
    "SeedFile",
    "SeedUser",
    "is_node_name",
    "load_seed",
    "parse_seed",
    "seed_names",
]

_NODE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_TOKEN = re.compile(r"[A-Za-z0-9-]+")
_METHODS = ("POST", "PUT", "DELETE")
_FIELDS = frozenset(("nodes", "password", "token", "authorized_keys", "system_users", "files", "calls"))
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")

BAD_SEED = Kind(
    code="E-LAB-SEED-FIELD",
    summary="A seed has a wrong field",
    remedy="Write the seed as docs/reference/lab-control.md describes it.",
)


class SeedError(InvalidInputError):
    """A seed does not exist, cannot be read, or one of its calls was refused; the lab holds nothing of it."""

    code = "E-LAB-SEED"
    summary = "The seed cannot be used"
    default_remedy = "Correct the seed; `stackyard lab up --seed empty` starts without one."


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedUser:
    """A user of the nodes' systems beside root, who logs in over SSH and uses sudo."""

    name: str
    password: str = field(default="", repr=False)
    authorized_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedCall:
    """A call of the API that fills a new lab; `{node1}` in it stands for its first node, and so on."""

    method: str
    path: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedFile:
    """A file in a storage of a new lab: a volume id, the node, and either text or a size in bytes."""

    volume: str
    node: str = "{node1}"
    text: str = ""
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """What a new lab holds beyond storages, a bridge and root@pam.

    Attributes:
        name: What it was loaded by.
        nodes: The names of the nodes.
        password: The password of root@pam; a random one if None.
        token: The secret of the API token; a random one if None.
        authorized_keys: Who may log in as root over SSH with a key, as in a file of that name.
        system_users: Who else may log in over SSH.
        files: Files in storages, made before the calls.
        calls: What is asked of the API, in this order, as root@pam.
    """

    name: str
    nodes: tuple[str, ...] = ("pve1",)
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    authorized_keys: tuple[str, ...] = ()
    system_users: tuple[SeedUser, ...] = ()
    files: tuple[SeedFile, ...] = ()
    calls: tuple[SeedCall, ...] = ()


EMPTY = Seed(name="empty")


def is_node_name(name: str) -> bool:
    """Tell whether a node can have this name."""
    return _NODE.fullmatch(name) is not None


def seed_names() -> list[str]:
    """Return the names of the seeds that come with the lab."""
    found = (resources.files(__package__) / "shipped").iterdir()
    return sorted(file.name.removesuffix(".json") for file in found if file.name.endswith(".json"))


def load_seed(name: str) -> Seed:
    """Return a seed by its name, or from a JSON file: everything with a slash or `.json` is one.

    Raises:
        SeedError: There is no such seed, or it is wrong.
        FileError: The file cannot be read.
    """
    if "/" in name or name.endswith(".json"):
        path = Path(name)
        return parse_seed(_decode(read_text(path), Location(name)), name=path.stem, where=Location(name))
    if name not in seed_names():
        raise SeedError(
            f"There is no seed '{name}'; there are {', '.join(seed_names())}, or name a JSON file."
        )
    text = (resources.files(__package__) / "shipped" / f"{name}.json").read_text()
    return parse_seed(_decode(text, Location(f"{name}.json")), name=name)


def parse_seed(document: Any, *, name: str = "given", where: Location | None = None) -> Seed:
    """Return the seed that a JSON object describes.

    Raises:
        SeedError: The object is wrong; all of what is wrong is listed.
    """
    found = Diagnostics()
    if not isinstance(document, Mapping):
        raise SeedError(f"The seed '{name}' is not an object.", where=where)
    for key in sorted(set(document) - _FIELDS):
        found.add(BAD_SEED, f"There is no field '{key}'.", where)
    seed = Seed(
        name=name,
        nodes=_nodes(document, found, where),
        password=_text(document, "password", found, where),
        token=_text(document, "token", found, where),
        authorized_keys=tuple(map(str, _list(document, "authorized_keys", found, where))),
        system_users=tuple(
            _user(entry, found, where) for entry in _list(document, "system_users", found, where)
        ),
        files=tuple(_file(entry, found, where) for entry in _list(document, "files", found, where)),
        calls=tuple(_call(entry, found, where) for entry in _list(document, "calls", found, where)),
    )
    if seed.token is not None and not _TOKEN.fullmatch(seed.token):
        found.add(BAD_SEED, "'token' may have letters, digits and dashes only: clients refuse others.", where)
    if found.errors:
        raise SeedError(f"The seed '{name}' has {len(found.errors)} wrong fields.", found.errors, where=where)
    return seed


def _decode(text: str, where: Location) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as err:
        place = Location(where.path, err.lineno, err.colno)
        raise SeedError(f"{where.path} is not JSON: {err.msg}.", where=place) from err


def _nodes(document: Mapping[str, Any], found: Diagnostics, where: Location | None) -> tuple[str, ...]:
    names = tuple(map(str, _list(document, "nodes", found, where))) or EMPTY.nodes
    for name in names:
        if not is_node_name(name):
            found.add(BAD_SEED, f"'{name}' in 'nodes' is no name for a node.", where)
    if len(set(names)) != len(names):
        found.add(BAD_SEED, "'nodes' has a name twice.", where)
    return names


def _text(document: Mapping[str, Any], key: str, found: Diagnostics, where: Location | None) -> str | None:
    value = document.get(key)
    if value is not None and (not isinstance(value, str) or not value):
        found.add(BAD_SEED, f"'{key}' must be text.", where)
        return None
    return value


def _list(document: Mapping[str, Any], key: str, found: Diagnostics, where: Location | None) -> list[Any]:
    value = document.get(key, [])
    if not isinstance(value, list):
        found.add(BAD_SEED, f"'{key}' must be a list.", where)
        return []
    return value


def _user(entry: Any, found: Diagnostics, where: Location | None) -> SeedUser:
    fields = dict(entry) if isinstance(entry, Mapping) else {}
    keys = fields.get("authorized_keys", [])
    name, password = str(fields.get("name", "")), fields.get("password", "")
    fits = set(fields) <= {"name", "password", "authorized_keys"} and _USER.fullmatch(name) and name != "root"
    if not fits or not isinstance(keys, list) or not isinstance(password, str):
        text = (
            "an entry of 'system_users' has a 'name' (not root), a 'password' and a list 'authorized_keys'."
        )
        found.add(BAD_SEED, text, where)
        return SeedUser(name=name)
    return SeedUser(name=name, password=password, authorized_keys=tuple(map(str, keys)))


def _call(entry: Any, found: Diagnostics, where: Location | None) -> SeedCall:
    method, path, parameters = "POST", "", {}
    if isinstance(entry, Mapping):
        method, path = str(entry.get("method", "POST")).upper(), str(entry.get("path", ""))
        parameters = entry.get("parameters", {})
    known = isinstance(entry, Mapping) and set(entry) <= {"method", "path", "parameters"}
    if not known or method not in _METHODS or not path.startswith("/") or not isinstance(parameters, Mapping):
        text = f"{entry!r} in 'calls' is no call: it has a 'method' ({', '.join(_METHODS)}), a 'path' such as"
        found.add(BAD_SEED, f"{text} /pools, and 'parameters'.", where)
        parameters = {}
    return SeedCall(method=method, path=path, parameters=parameters)


def _file(entry: Any, found: Diagnostics, where: Location | None) -> SeedFile:
    fields = dict(entry) if isinstance(entry, Mapping) else {}
    size = fields.get("size")
    fits = (
        set(fields) <= {"volume", "node", "text", "size"}
        and ":" in str(fields.get("volume", ""))
        and isinstance(fields.get("text", ""), str)
        and (size is None or (isinstance(size, int) and size >= 0 and "text" not in fields))
    )
    if not fits:
        text = (
            f"{entry!r} in 'files' is no file: it has a 'volume' such as local:iso/debian.iso, and 'text' or"
        )
        found.add(BAD_SEED, f"{text} 'size'.", where)
        return SeedFile(volume="")
    return SeedFile(**fields)
