"""Every file that a cluster needs, beside what is there: what changes, and what may not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stackyard.base.errors import FileError
from stackyard.path.clusters.bounded_templates import bounded_templates
from stackyard.path.clusters.image_lock import list_unpinned, read_image_lock, warn_of_unpinned
from stackyard.path.clusters.record import take_fingerprint
from stackyard.path.clusters.secret_files import list_tokens, refuse_clear, seal_file
from stackyard.path.clusters.sops_rules import SopsRules, plan_rules
from stackyard.path.clusters.templates import find_overrides, find_top
from stackyard.path.ignored_files import ENGINE_FILES, IgnoredLine, add_lines, list_missing, read_ignored
from stackyard.render.cluster import render_infrastructure, render_kubernetes_secrets, render_secrets
from stackyard.render.cluster.taskfile import render_taskfiles
from stackyard.render.cluster.values import describe_previous

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from stackyard.path.clusters.image_lock import ImageLock
    from stackyard.path.clusters.record import GenerationRecord
    from stackyard.secrets.keyring import Keyring
    from stackyard.sources.cluster.model import Cluster

__all__ = ["FileChange", "GeneratedFiles", "list_generated"]

_LOCK_FILE = ".terraform.lock.hcl"
_FOREIGN = "it is there already and was not written by stackyard"
_PREVIOUS = (
    "`state_encryption_passphrase_previous` is set. Remove it after one apply, and run the command again: as "
    "long as it is there, the former passphrase, or a state in clear, is accepted."
)
_EDITED = "it was edited since stackyard wrote it"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A file before and after; None where it does not exist.

    Attributes:
        path: Where it is.
        name: Its path from the folder of the cluster.
        before: What is in it.
        after: What will be in it.
        conflict: Why it may not be changed; empty where it may.
        is_optional: Whether the cluster does without the file: one of the user is left alone.
    """

    path: Path
    name: str
    before: bytes | None = field(repr=False)
    after: bytes | None = field(repr=False)
    conflict: str = ""
    is_optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedFiles:
    """All files of a cluster.

    Attributes:
        changes: The files, those that do not change included.
        fingerprints: What the record says of them afterwards.
        warnings: What else should be said.
    """

    changes: tuple[FileChange, ...]
    fingerprints: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def list_generated(cluster: Cluster, keyring: Keyring, recorded: GenerationRecord) -> GeneratedFiles:
    """Return every file of a cluster as it is and as it will be.

    The order is that of writing: what protects secrets comes first.

    Raises:
        StackyardError: A template, a key or a file cannot be used; see the functions of each step.
    """
    overrides, lock = find_overrides(cluster.folder), read_image_lock(cluster)
    with bounded_templates() as render_own:
        texts = render_infrastructure(
            cluster, overrides=overrides, checksums=lock.checksums, render_own=render_own
        )
        sealed = render_secrets(cluster, overrides=overrides, checksums=lock.checksums, render_own=render_own)
    texts = {f"infrastructure/{name}": data for name, data in texts.items()}
    plains = {f"infrastructure/{name}": data for name, data in sealed.items()} | {
        f"kubernetes/{name}": data for name, data in render_kubernetes_secrets(cluster).items()
    }
    ignored, warnings = _plan_ignored(cluster)
    warnings += _list_warnings(cluster, lock)
    secrets = _Secrets(cluster, keyring, recorded)
    rules = plan_rules(find_top(cluster.folder), (cluster.folder / name for name in plains), keyring)
    changes = [*ignored, *_plan_rules_files(cluster, rules)]
    changes += [secrets.plan(name, plain, rules[cluster.folder / name]) for name, plain in plains.items()]
    changes += [_plan_text(cluster, name, data, recorded) for name, data in texts.items()]
    tasks = render_taskfiles()
    changes += [
        replace(_plan_text(cluster, name, data, recorded), is_optional=True) for name, data in tasks.items()
    ]
    wanted = {**texts, **plains, **tasks}
    changes += _plan_removals(cluster, wanted, recorded)
    fingerprints = {name: take_fingerprint(data) for name, data in {**texts, **tasks}.items()}
    return GeneratedFiles(
        changes=tuple(changes), fingerprints=fingerprints | secrets.tokens, warnings=tuple(warnings)
    )


def _list_warnings(cluster: Cluster, lock: ImageLock) -> Iterator[str]:
    if unpinned := list_unpinned(cluster, lock):
        yield warn_of_unpinned(unpinned)
    if describe_previous(cluster):
        yield _PREVIOUS


def _plan_text(cluster: Cluster, name: str, after: bytes, recorded: GenerationRecord) -> FileChange:
    path = cluster.folder / name
    before = _read(path)
    conflict = ""
    if before is not None and before != after and not recorded.is_ours(name, take_fingerprint(before)):
        conflict = _EDITED if recorded.knows(name) else _FOREIGN
    return FileChange(path=path, name=name, before=before, after=after, conflict=conflict)


class _Secrets:
    """Plans encrypted files, and collects the fingerprints of their values."""

    def __init__(self, cluster: Cluster, keyring: Keyring, recorded: GenerationRecord) -> None:
        self.tokens: dict[str, str] = {}
        self._cluster = cluster
        self._keyring = keyring
        self._recorded = recorded

    def plan(self, name: str, plain: bytes, rules: SopsRules) -> FileChange:
        path = self._cluster.folder / name
        sealed = seal_file(
            path,
            name,
            plain,
            rule=rules.config.creation_rule(path),
            keyring=self._keyring,
            record=self._recorded,
        )
        refuse_clear(sealed, path, self._cluster.secrets)
        self.tokens |= sealed.tokens
        conflict = ""
        if sealed.edited:
            conflict = (
                f"{', '.join(sealed.edited)} in it differs from the input and was not written by stackyard; "
                "put the value that counts into the input"
            )
        return FileChange(path=path, name=name, before=_read(path), after=sealed.data, conflict=conflict)


def _plan_removals(
    cluster: Cluster, wanted: Mapping[str, bytes], recorded: GenerationRecord
) -> Iterator[FileChange]:
    """Yield the files that were generated once and are no longer."""
    names = {name.partition("#")[0] for name in (*recorded.files, *recorded.pending)}
    for name in sorted(names - wanted.keys()):
        path = cluster.folder / name
        before = _read(path)
        if before is None:
            continue
        is_plain = recorded.knows(name)
        found = {name: take_fingerprint(before)} if is_plain else list_tokens(before, name)
        is_ours = all(recorded.is_ours(key, fingerprint) for key, fingerprint in found.items())
        yield FileChange(
            path=path,
            name=name,
            before=before,
            after=None,
            conflict="" if is_ours else f"{_EDITED}, and is no longer generated",
        )


def _plan_rules_files(cluster: Cluster, rules: Mapping[Path, SopsRules]) -> Iterator[FileChange]:
    for one in {rule.config.path: rule for rule in rules.values()}.values():
        path = one.config.path
        before = one.before.encode() if path.exists() else None
        yield FileChange(path=path, name=_name(cluster, path), before=before, after=one.after.encode())


def _plan_ignored(cluster: Cluster) -> tuple[list[FileChange], list[str]]:
    """Return `.gitignore` with what it needs, and what it should not have."""
    top = find_top(cluster.folder)
    path = top / ".gitignore"
    if path.is_symlink():
        return [], [f"{path} is a link, which git does not follow: nothing in it is ignored."]
    text = read_ignored(top)
    lines = (*ENGINE_FILES, ("age.key", ("/age.key", "*.key")), *_secret_inputs(cluster, top, text))
    after = add_lines(text, list_missing(text, lines))
    warnings = [
        f"{path}:{number} keeps {_LOCK_FILE} out of git. Remove the line: everybody should use one provider."
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip().endswith(_LOCK_FILE) and not line.strip().startswith(("#", "!"))
    ]
    before = text.encode(errors="surrogateescape") if path.exists() else None
    data = after.encode(errors="surrogateescape")
    return [FileChange(path=path, name=_name(cluster, path), before=before, after=data)], warnings


def _secret_inputs(cluster: Cluster, top: Path, text: str) -> Iterator[IgnoredLine]:
    """Yield the lines of a `.gitignore` for files of the input with secrets in clear."""
    # A user name has a default and is no secret by itself.
    if cluster.are_secrets_in_git or not set(cluster.secrets) - {"tfstate_username"}:
        return
    for file in cluster.files or (cluster.folder / "cluster.yaml",):
        if file.stem == "cluster" and not file.name.endswith(".sops.yaml"):
            shown = file.absolute().relative_to(top).as_posix()
            # An exception for it, which a split leaves, comes after a line for all files of the name.
            is_excepted = f"!/{shown}" in text.splitlines()
            yield f"/{shown}", () if is_excepted else (shown, file.name, f"**/{file.name}")


def _name(cluster: Cluster, path: Path) -> str:
    folder = cluster.folder.absolute()
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err
