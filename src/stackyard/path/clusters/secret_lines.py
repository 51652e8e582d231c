"""The secrets in the text of a `cluster.yaml` or `cluster.toml`, and that text without their lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from stackyard.base.diagnostics import Diagnostics
from stackyard.base.documents.limits import SMALL
from stackyard.base.documents.yamltext import parse_yaml
from stackyard.base.errors import InvalidInputError, Location
from stackyard.secrets.layout import Leaf
from stackyard.secrets.sops.text import FileFormat, text_format
from stackyard.sources.cluster.toml_layout import SECRETS, take_secrets
from stackyard.sources.cluster.toml_text import TomlDocument, parse_toml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["SplitError", "take_out"]

_NAMES = ("_username", "_id")
_SHORTEST_SECRET = 6


class SplitError(InvalidInputError):
    """The secrets cannot be moved out of the file of a cluster as it is; nothing was lost."""

    code = "E-CLUSTER-SPLIT"
    summary = "The secrets cannot be moved out of the file of the cluster"
    default_remedy = "Correct the place that is named, and run the command again."


def take_out(text: str, names: frozenset[str], path: Path) -> tuple[dict[str, Any], str]:
    """Return the secrets of a text by the names of their fields, and the text without their lines.

    Every other line stays as it is.

    Args:
        text: The text of a `cluster.yaml` or `cluster.toml`.
        names: The fields that are secret.
        path: The file; its name says which of the two it is.

    Raises:
        SplitError: It is not valid, a secret shares its line with other fields, or is also somewhere else.
    """
    take = _take_from_toml if path.suffix == ".toml" else _take_from_yaml
    moved, edited = take(text, names, path)
    _refuse_left_over(edited, moved, path)
    return moved, edited


def _take_from_yaml(text: str, names: frozenset[str], path: Path) -> tuple[dict[str, Any], str]:
    found = _read_mapping(text, path)
    layout = text_format(FileFormat.YAML).parse(text, str(path))
    dropped: set[int] = set()
    for entry in (entry for one in layout.documents for entry in one.root.entries if entry.key in names):
        if not isinstance(entry.node, Leaf):
            raise SplitError(f"{entry.key} is no single value.", where=entry.place.location(str(path)))
        last = text.count("\n", 0, max(entry.node.start, entry.node.end - 1)) + 1
        dropped |= {*range(entry.place.line, max(entry.place.line, last) + 1)}
    edited = _without(text, dropped)
    kept = {name: value for name, value in found.items() if name not in names}
    if dropped and not _has_values(edited, kept):
        raise _mixed(path, dropped, "without anchors")
    return {name: value for name, value in found.items() if name in names and value is not None}, edited


def _take_from_toml(text: str, names: frozenset[str], path: Path) -> tuple[dict[str, Any], str]:
    document = _read_toml(text, path)
    places = {name: place for name, place in SECRETS.items() if name in names}
    dropped: set[int] = set()
    for place in places.values():
        last = document.last_line(place)
        if last is not None:
            dropped |= {*range(document.key_place(place).line or last, last + 1)}
    moved = {name: value for name, value in take_secrets(document.data).items() if name in places}
    for name, value in moved.items():
        if isinstance(value, dict | list):
            raise SplitError(f"{name} is no single value.", where=document.key_place(places[name]))
    edited = _without(text, dropped)
    after = parse_toml(edited, str(path), Diagnostics())
    if moved and _without_empty({} if after is None else after.data) != _without_empty(document.data):
        raise _mixed(path, dropped or {1}, "outside of inline tables")
    return moved, edited


def _read_mapping(text: str, path: Path) -> dict[str, Any]:
    try:
        found = parse_yaml(text, SMALL)
    except yaml.YAMLError as err:
        mark = getattr(err, "problem_mark", None)
        where = Location(str(path), mark.line + 1 if mark else None)
        raise SplitError(f"{path} is not valid YAML.", where=where) from err
    if not isinstance(found, dict):
        raise SplitError(f"{path} is no mapping.", where=Location(str(path)))
    return found


def _read_toml(text: str, path: Path) -> TomlDocument:
    found = Diagnostics()
    document = parse_toml(text, str(path), found)
    if document is None:
        where = next((one.where for one in found), None) or Location(str(path))
        raise SplitError(f"{path} is not valid TOML, or says nothing.", where=where)
    return document


def _without(text: str, dropped: set[int]) -> str:
    # `splitlines` would also end a line where TOML and YAML do not.
    lines = enumerate(text.split("\n"), 1)
    return "\n".join(line for number, line in lines if number not in dropped)


def _without_empty(value: Any) -> Any:
    """Return tables without those that have nothing in them: their header may have gone with a secret."""
    if not isinstance(value, dict):
        return value
    inner = {key: _without_empty(one) for key, one in value.items()}
    return {key: one for key, one in inner.items() if one != {}}


def _mixed(path: Path, dropped: set[int], how: str) -> SplitError:
    return SplitError(
        f"{path} is written so that its secrets cannot be taken out line by line.",
        where=Location(str(path), min(dropped)),
        remedy=f"Put each secret on lines of its own, {how}.",
    )


def _has_values(text: str, values: Mapping[str, Any]) -> bool:
    try:
        return (parse_yaml(text, SMALL) or {}) == values
    except yaml.YAMLError:
        return False


def _refuse_left_over(text: str, moved: Mapping[str, Any], path: Path) -> None:
    """Refuse a text that still has a secret, in a comment for example: git would hold it."""
    for name, value in moved.items():
        # A name, such as `terraform`, may well be in other places.
        if name.endswith(_NAMES) or len(str(value)) < _SHORTEST_SECRET:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if str(value) in line:
                raise SplitError(
                    f"The value of {name} is also somewhere else in {path}.",
                    where=Location(str(path), number),
                    remedy="Remove it there: after the split, git may hold the file.",
                )
