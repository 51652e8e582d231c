"""Moving the secrets of a cluster out of `cluster.yaml` or `cluster.toml`, so that git may hold it.

The order is such that no value is lost and nothing in clear comes to git, wherever it stops: first the
encrypted file, then the file without secrets, and `.gitignore` last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base import files, locks, yamledit
from stackyard.base.errors import Location
from stackyard.path.clusters.keys import make_keyring
from stackyard.path.clusters.record import GenerationRecord
from stackyard.path.clusters.secret_files import refuse_clear, seal_file
from stackyard.path.clusters.secret_lines import SplitError, take_out
from stackyard.path.clusters.sops_rules import plan_rules
from stackyard.path.clusters.templates import find_top
from stackyard.path.ignored_files import read_ignored
from stackyard.secrets.protected_file import open_file
from stackyard.secrets.read import read_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.secrets.keyring import Keyring

__all__ = ["SplitError", "SplitReport", "split_secrets"]

_YAML = "cluster.yaml"
_TOML = "cluster.toml"
_SEALED = "cluster.sops.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitReport:
    """What `cluster split` did.

    Attributes:
        file: The name of the file that had the secrets.
        moved: The fields that are in `cluster.sops.yaml` now and were in that file.
        unignored: The lines that were removed from `.gitignore`, or added to it as exceptions (`!/...`).
    """

    file: str
    moved: tuple[str, ...]
    unignored: tuple[str, ...] = ()


def split_secrets(folder: Path, names: frozenset[str], *, keyring: Keyring | None = None) -> SplitReport:
    """Move the secrets of a cluster from `cluster.yaml` or `cluster.toml` to `cluster.sops.yaml`.

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
    plain, sealed = folder / _YAML, folder / _SEALED
    if (folder / _TOML).exists():
        if plain.exists():
            raise SplitError(
                f"{folder} has {_YAML} and {_TOML}.",
                where=Location(str(folder / _TOML)),
                remedy="Keep one of the two: they would describe two clusters in one place.",
            )
        plain = folder / _TOML
    with locks.hold_folder(folder):
        moved, edited = take_out(files.read_text(plain), names, plain)
        if moved:
            _write_sealed(sealed, moved, keyring, plain.name)
            files.replace_file(plain, edited.encode(), mode=plain.stat().st_mode & 0o777)
        unignored = _stop_ignoring(folder, (plain.name, *(("nodes.yaml",) if plain.name == _YAML else ())))
    return SplitReport(file=plain.name, moved=tuple(sorted(moved)), unignored=unignored)


def _write_sealed(path: Path, moved: Mapping[str, Any], keyring: Keyring, source: str) -> None:
    """Add values to `cluster.sops.yaml`."""
    known = read_secrets(path, keyring).data
    differing = sorted(name for name in moved if name in known and known[name] != moved[name])
    if differing:
        raise SplitError(
            f"{', '.join(differing)}: {source} and {_SEALED} have different values.",
            where=Location(str(path)),
            remedy=f"Remove the one that does not count, from {source} or with `stackyard secrets edit`.",
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


def _stop_ignoring(folder: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """Let git see the files of a cluster again; return the lines of `.gitignore` that changed.

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
    for name in names:
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
