"""Moving the secrets of a cluster out of `cluster.yaml`, so that git may hold it.

The order is such that no value is lost and nothing in clear comes to git, wherever it stops: first the
encrypted file, then `cluster.yaml` without secrets, and `.gitignore` last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from stackyard.base import files, locks, yamledit
from stackyard.base.documents.limits import SMALL
from stackyard.base.documents.yamltext import parse_yaml
from stackyard.base.errors import InvalidInputError, Location
from stackyard.path.clusters.keys import make_keyring
from stackyard.path.clusters.record import GenerationRecord
from stackyard.path.clusters.secret_files import refuse_clear, seal_file
from stackyard.path.clusters.sops_rules import plan_rules
from stackyard.path.clusters.templates import find_top
from stackyard.path.ignored_files import read_ignored
from stackyard.secrets.layout import Leaf
from stackyard.secrets.protected_file import open_file
from stackyard.secrets.read import read_secrets
from stackyard.secrets.sops.text import FileFormat, text_format

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.secrets.keyring import Keyring

__all__ = ["SplitError", "SplitReport", "split_secrets"]

_PLAIN = "cluster.yaml"
_SEALED = "cluster.sops.yaml"
_NAMES = ("_username", "_id")
_SHORTEST_SECRET = 6


class SplitError(InvalidInputError):
    """The secrets cannot be moved out of `cluster.yaml` as it is; nothing was lost."""

    code = "E-CLUSTER-SPLIT"
    summary = "The secrets cannot be moved out of cluster.yaml"
    default_remedy = "Correct the place that is named, and run the command again."


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitReport:
    """What `cluster split` did.

    Attributes:
        moved: The fields that are in `cluster.sops.yaml` now and were in `cluster.yaml`.
        unignored: The lines that were removed from `.gitignore`, or added to it as exceptions (`!/...`).
    """

    moved: tuple[str, ...]
    unignored: tuple[str, ...] = ()


def split_secrets(folder: Path, names: frozenset[str], *, keyring: Keyring | None = None) -> SplitReport:
    """Move the secrets of a cluster from `cluster.yaml` to `cluster.sops.yaml`.

    Args:
        folder: The folder of the cluster.
        names: The fields that are secret.
        keyring: The keys of the user; those of the environment and `age.key` when absent.

    Raises:
        SplitError: A value is in both files and differs, a secret is also somewhere else in the text, or
            shares its line with other fields.
        AgeKeyMissingError: There is nobody to encrypt for.
        SecretsLockedError: The user has no key for `cluster.sops.yaml`.
        FileError: A file cannot be read or written.
    """
    keyring = keyring or make_keyring(folder)
    plain, sealed = folder / _PLAIN, folder / _SEALED
    if not plain.exists() and (folder / "cluster.toml").exists():
        raise SplitError(
            f"{folder} has a cluster.toml, and only the lines of a {_PLAIN} can be moved.",
            where=Location(str(folder / "cluster.toml")),
            remedy=f"Write the secrets into {_SEALED}, encrypt it with `stackyard secrets encrypt`, and "
            "remove them from cluster.toml.",
        )
    with locks.hold_folder(folder):
        text = files.read_text(plain)
        found = _read_mapping(text, plain)
        moved = {name: value for name, value in found.items() if name in names and value is not None}
        edited = _drop_fields(text, names, plain)
        _refuse_left_over(edited, moved, plain)
        if moved:
            _write_sealed(sealed, moved, keyring)
            files.replace_file(plain, edited.encode(), mode=plain.stat().st_mode & 0o777)
        unignored = _stop_ignoring(folder)
    return SplitReport(moved=tuple(sorted(moved)), unignored=unignored)


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


def _drop_fields(text: str, names: frozenset[str], path: Path) -> str:
    """Return a text without the lines of some fields; every other line stays as it is."""
    layout = text_format(FileFormat.YAML).parse(text, str(path))
    dropped: set[int] = set()
    for entry in (entry for one in layout.documents for entry in one.root.entries if entry.key in names):
        if not isinstance(entry.node, Leaf):
            raise SplitError(f"{entry.key} is no single value.", where=entry.place.location(str(path)))
        last = text.count("\n", 0, max(entry.node.start, entry.node.end - 1)) + 1
        dropped |= {*range(entry.place.line, max(entry.place.line, last) + 1)}
    lines = enumerate(text.splitlines(keepends=True), 1)
    edited = "".join(line for number, line in lines if number not in dropped)
    kept = {name: value for name, value in _read_mapping(text, path).items() if name not in names}
    if dropped and not _has_values(edited, kept):
        raise SplitError(
            f"{path} is written so that its secrets cannot be taken out line by line.",
            where=Location(str(path), min(dropped)),
            remedy="Put each secret on lines of its own, without anchors.",
        )
    return edited


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


def _write_sealed(path: Path, moved: Mapping[str, Any], keyring: Keyring) -> None:
    """Add values to `cluster.sops.yaml`."""
    known = read_secrets(path, keyring).data
    differing = sorted(name for name in moved if name in known and known[name] != moved[name])
    if differing:
        raise SplitError(
            f"{', '.join(differing)}: {_PLAIN} and {_SEALED} have different values.",
            where=Location(str(path)),
            remedy=f"Remove the one that does not count, from {_PLAIN} or with `stackyard secrets edit`.",
        )
    before = open_file(path, keyring).plain.decode() if path.exists() else ""
    changes = [yamledit.Set((name,), value) for name, value in moved.items() if name not in known]
    plain = yamledit.edit_text(before, changes, str(path)).encode()
    rules = plan_rules(find_top(path.parent), [path], keyring)[path]
    done = seal_file(
        path,
        path.name,
        plain,
        rule=rules.config.creation_rule(path),
        keyring=keyring,
        record=GenerationRecord(),
    )
    refuse_clear(done, path, {name: str(value) for name, value in moved.items()})
    if rules.after != rules.before:
        files.replace_file(rules.config.path, rules.after.encode(), mode=0o644)
    files.replace_file(path, done.data, mode=0o644)


def _stop_ignoring(folder: Path) -> tuple[str, ...]:
    """Let git see `cluster.yaml` and `nodes.yaml` again; return the lines of `.gitignore` that changed.

    A line for every file of the name stays, because other clusters may need it: an exception follows it.
    """
    top = find_top(folder)
    path = top / ".gitignore"
    if path.is_symlink() or not path.exists():
        return ()
    text = read_ignored(top)
    lines = [line.strip() for line in text.splitlines()]
    changed: list[str] = []
    exceptions: list[str] = []
    for name in (_PLAIN, "nodes.yaml"):
        shown = (folder / name).absolute().relative_to(top).as_posix()
        changed += [line for line in lines if line == f"/{shown}" or (line == shown and "/" in line)]
        if {name, f"**/{name}"} & set(lines) and f"!/{shown}" not in lines:
            exceptions.append(f"!/{shown}")
    if not changed and not exceptions:
        return ()
    kept = "".join(line for line in text.splitlines(keepends=True) if line.strip() not in changed)
    end = "" if not exceptions or kept.endswith("\n") or not kept else "\n"
    after = f"{kept}{end}" + "".join(f"{line}\n" for line in exceptions)
    files.replace_file(path, after.encode(errors="surrogateescape"), mode=path.stat().st_mode & 0o777)
    return (*changed, *exceptions)
