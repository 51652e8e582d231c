"""Adding the nodes of a cluster to a site, or to a new one: first a plan, then all of it or nothing."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import yaml

from stackyard.base import directories, files
from stackyard.base.diagnostics import Diagnostic, Kind
from stackyard.base.errors import FileError, InvalidInputError, Location
from stackyard.base.visible import visible
from stackyard.secrets import Keyring, SecretsKind, create_sops_file, read_secrets, user_recipient
from stackyard.sources.site.discovery import SITE_FILE
from stackyard.sources.site.edit import plan_node, put_api_token
from stackyard.sources.site.load import Site
from stackyard.sources.site.new_site import (
    OWN_KEY,
    FolderInUseError,
    format_secrets,
    format_sops_rules,
    make_own_key,
    starter_files,
)
from stackyard.sources.site.secret_values import SECRETS_FILES, find_secrets_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from stackyard.sources.site.edit import EditedFile

__all__ = [
    "ConnectedNode",
    "PlainSecretsError",
    "SiteConflictError",
    "SitePlan",
    "WrittenSite",
    "plan_site",
    "require_encrypted",
    "write_site",
]

CONFLICT = Kind(
    code="E-CONNECT-CONFLICT",
    summary="The site says something else about a node",
    remedy="Correct the file, or overwrite these values with --overwrite; or call the node something else "
    "in the site with --as NAME.",
)
_READABLE = 0o644
_SOPS_RULES = ".sops.yaml"
# What decides which cluster a file is about. Everything else in it is the choice of its user.
_IDENTITY = ("node", "api_token", "api_fingerprint")
_FIRST_ENV = """\
# One small container, to see that everything works: `stackyard plan first`, then `stackyard apply first`.
# It needs the API alone. Virtual machines with specs or packages (envs/dev.yaml) also need SSH to the node.
node: {node}
vms:
  - name: first
    type: ct
    image: debian-13-ct
    cores: 1
    memory: 512
    disk: 4
    network: lan
"""


class SiteConflictError(InvalidInputError):
    """Files of the site are about another cluster, or say something else about this one."""

    code = "E-CONNECT-CONFLICTS"
    summary = "The site and the cluster differ"
    default_remedy = CONFLICT.remedy


class PlainSecretsError(InvalidInputError):
    """The secrets of the site are not encrypted, and a new token must not be written there."""

    code = "E-CONNECT-PLAIN-SECRETS"
    summary = "The secrets of the site are not encrypted"
    default_remedy = "Encrypt them: `stackyard secrets encrypt secrets.yaml`."


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectedNode:
    """A node to add.

    Attributes:
        name: What Proxmox calls it.
        alias: What the site calls it; the same when absent.
        fields: What its file says.
        comments: A comment before each of these fields.
    """

    name: str
    alias: str | None = None
    fields: Mapping[str, Any]
    comments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePlan:
    """What is to be written.

    Attributes:
        root: The folder of the site.
        is_new: Whether the site is made.
        nodes: What the site calls each node.
        texts: The files to write, in this order.
        edited: What becomes of the files of nodes.
        token_key: What the secrets call the token.
        known_token: The token that the secrets have under this name.
        secrets_file: The file of the secrets.
    """

    root: Path
    is_new: bool
    nodes: Mapping[str, str]
    texts: Mapping[str, str]
    edited: tuple[EditedFile, ...]
    token_key: str
    known_token: str | None = field(repr=False)
    secrets_file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSite:
    """What was written.

    Attributes:
        files: The files, by their names in the site.
        new_key: The file of the age key, where one had to be made.
        ssh_key: The file of the SSH key of the site, where one was made.
    """

    files: tuple[str, ...]
    new_key: Path | None = None
    ssh_key: Path | None = None


def plan_site(
    root: Path,
    nodes: Sequence[ConnectedNode],
    *,
    cluster: str,
    bridge: str = "vmbr0",
    overwrites: bool = False,
) -> SitePlan:
    """Return what has to be written so that a site has these nodes.

    Args:
        root: The folder of the site; one without site.yaml becomes a new site.
        nodes: The nodes; at least one.
        cluster: What a new token is called in the secrets.
        bridge: Where guests of a new site plug in.
        overwrites: Whether values of files that differ are overwritten.

    Raises:
        SiteConflictError: Files of the site say something else.
        FolderInUseError: A new site is to be made in a folder that has other things in it.
        InvalidInputError: The secrets of the site cannot be opened.
        PlainSecretsError: The secrets of the site are not encrypted.
        FileError: The folder cannot be written.
    """
    is_new = not (root / SITE_FILE).is_file()
    if is_new:
        _require_free(root)
    known = {} if is_new else {name: loaded.model for name, loaded in Site.open(root).nodes.items()}
    stems = {node.name: node.alias or _find_stem(node, known) for node in nodes}
    tokens = {known[stem].api_token or stem for stem in stems.values() if stem in known}
    key = tokens.pop() if len(tokens) == 1 else _find_free_key(cluster, known, stems)
    edited, texts = _plan_nodes(root, nodes, stems, key, overwrites=overwrites)
    if is_new:
        texts = {**_plan_new_files(root, stems[nodes[0].name], bridge), **texts}
        texts[SITE_FILE] = dict(starter_files(stems[nodes[0].name], bridge=bridge))[SITE_FILE]
    path = find_secrets_file(root)
    secrets = read_secrets(path)
    require_encrypted(root, path, secrets.kind is SecretsKind.PLAIN)
    present = secrets.data.get("api_tokens")
    return SitePlan(
        root=root,
        is_new=is_new,
        nodes=stems,
        texts=texts,
        edited=edited,
        token_key=key,
        known_token=str(present[key]) if isinstance(present, dict) and present.get(key) else None,
        secrets_file=path,
    )


def _require_free(root: Path) -> None:
    """Refuse to spread a site over a folder with other things; what a killed run left is no such thing."""
    if not root.exists():
        return
    own = {name.partition("/")[0] for name, _ in starter_files("lab")} | {"nodes", *SECRETS_FILES}
    others = [entry.name for entry in root.iterdir() if entry.name not in own and entry.name[0] != "."]
    if others:
        raise FolderInUseError(
            f"{root} has no {SITE_FILE} and is not empty: {', '.join(sorted(others)[:3])}.",
            where=Location(str(root)),
            remedy="Run the command in the folder of the site, or name a new or empty one with --site DIR.",
        )


def require_encrypted(root: Path, path: Path, is_plain: bool) -> None:
    """Refuse to write a token into secrets that are not encrypted, or that cannot be written.

    Raises:
        PlainSecretsError: They are not encrypted.
        FileError: The folder cannot be written.
    """
    _require_writable(root, path)
    if is_plain:
        raise PlainSecretsError(f"{path} is not encrypted.", where=Location(str(path)))


def _require_writable(root: Path, secrets: Path) -> None:
    """Find out before anything is changed on the cluster that a file could not be written."""
    for folder in {root, root / "nodes", secrets.resolve().parent}:
        there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            raise FileError(f"Cannot write to the folder {there}.", where=Location(str(there)))


def _find_free_key(wanted: str, known: Mapping[str, Any], stems: Mapping[str, str]) -> str:
    """Return a name for the token that no node of another cluster uses."""
    used = {model.api_token or stem for stem, model in known.items() if stem not in stems.values()}
    return next(key for n in itertools.count(1) if (key := f"{wanted}-{n}" if n > 1 else wanted) not in used)


def _find_stem(node: ConnectedNode, known: Mapping[str, Any]) -> str:
    """Return what the site calls a node: the file that is about it already, else its own name."""
    host = urlsplit(node.fields["api_endpoint"]).netloc
    for stem, model in known.items():
        is_same = urlsplit(model.api_endpoint).netloc == host or (
            model.api_fingerprint is not None and model.api_fingerprint == node.fields.get("api_fingerprint")
        )
        if is_same and (model.node or stem) == node.name:
            return stem
    return node.name


def _plan_nodes(
    root: Path, nodes: Sequence[ConnectedNode], stems: Mapping[str, str], key: str, *, overwrites: bool
) -> tuple[tuple[EditedFile, ...], dict[str, str]]:
    edited: list[EditedFile] = []
    texts: dict[str, str] = {}
    conflicts: list[Diagnostic] = []
    for node in nodes:
        stem = stems[node.name]
        own = {"node": node.name} if stem != node.name else {}
        fields = {**own, **node.fields, "api_token": key}
        one, text = plan_node(root, stem, fields, overwrites=overwrites)
        conflicts += _find_conflicts(one, fields)
        edited.append(one)
        if one.is_new:
            text = _format_node(fields, node.comments)
        if one.is_new or one.changed:
            texts[f"nodes/{stem}.yaml"] = text
    if conflicts:
        what = f"{len(conflicts)} values differ; nothing was changed."
        raise SiteConflictError(what, tuple(conflicts))
    return tuple(edited), texts


def _find_conflicts(edited: EditedFile, fields: Mapping[str, Any]) -> Iterator[Diagnostic]:
    kept = set(edited.kept)
    if "api_fingerprint" in fields and not kept & {"api_fingerprint"} and "node" not in kept:
        # Another name for the same server.
        kept -= {"api_endpoint"}
    for key in sorted(kept & {*_IDENTITY, "api_endpoint"}):
        detail = f"`{key}` of {edited.path} is not {fields[key]}, which the cluster has."
        yield Diagnostic(kind=CONFLICT, detail=detail, where=Location(str(edited.path)))


def _format_node(fields: Mapping[str, Any], comments: Mapping[str, str]) -> str:
    lines = ["# A node of Proxmox VE; `stackyard connect` wrote this file. Change what you like."]
    for key, value in fields.items():
        lines += [f"# {visible(line)}" for line in comments.get(key, "").splitlines()]
        lines.append(yaml.safe_dump({key: value}, allow_unicode=True, width=10**6).strip())
    return "\n".join(lines) + "\n"


def _plan_new_files(root: Path, node: str, bridge: str) -> dict[str, str]:
    """Return the files of a new site; one that is there stays as it is."""
    wanted = {**dict(starter_files(node, bridge=bridge)), "envs/first.yaml": _FIRST_ENV.format(node=node)}
    # What makes the folder a site comes last, so that a killed run is completed by the next one.
    del wanted[SITE_FILE]
    return {name: text for name, text in wanted.items() if not (root / name).exists()}


def write_site(plan: SitePlan, token: str | None, ssh_keys: Sequence[tuple[str, str]] = ()) -> WrittenSite:
    """Write everything; after a failure every file is as it was.

    Args:
        plan: What to write.
        token: The token; None if the secrets have it already.
        ssh_keys: Public keys of the user for a new site; without any, a key pair is made for it.

    Raises:
        StackyardError: Something cannot be written, or the site would not be valid; nothing was changed.
    """
    with contextlib.ExitStack() as undo:
        _make_folder(plan.root)
        known = [] if plan.is_new else Site.open(plan.root).found.errors
        written = []
        new_key = ssh_key = None
        has_rules = _has_rules(plan)
        if token is not None:
            _keep(plan.secrets_file, undo)
            new_key, ssh_key = _write_secrets(plan, token, ssh_keys, undo)
            written += [
                plan.secrets_file.name,
                *([_SOPS_RULES] if not has_rules and _has_rules(plan) else []),
            ]
        for name, text in plan.texts.items():
            _keep(plan.root / name, undo)
            _write(plan.root / name, text)
            written.append(name)
        _require_no_new_problem(plan.root, known)
        undo.pop_all()
    return WrittenSite(files=tuple(sorted(written)), new_key=new_key, ssh_key=ssh_key)


def _require_no_new_problem(root: Path, known: Sequence[Diagnostic]) -> None:
    """Refuse a site that has become worse; problems that it had are none of ours."""
    before = {(one.kind.code, one.detail) for one in known}
    found = [one for one in Site.open(root).found.errors if (one.kind.code, one.detail) not in before]
    if found:
        raise InvalidInputError("The site would not be valid; no file was changed.", tuple(found))


def _has_rules(plan: SitePlan) -> bool:
    return (plan.root / _SOPS_RULES).exists()


def _write_secrets(
    plan: SitePlan, token: str, ssh_keys: Sequence[tuple[str, str]], undo: contextlib.ExitStack
) -> tuple[Path | None, Path | None]:
    """Write the token; return the files of the age key and of the SSH key that were made for it."""
    path = plan.secrets_file
    if not plan.is_new or path.exists():
        put_api_token(plan.root, plan.token_key, token)
        return None, None
    recipient, new_key = user_recipient(Keyring())
    rules = plan.root / _SOPS_RULES
    if not rules.exists():
        _keep(rules, undo)
        _write(rules, format_sops_rules(recipient))
    if not ssh_keys and not (plan.root / directories.PROJECT_FOLDER).exists():
        undo.callback(shutil.rmtree, plan.root / directories.PROJECT_FOLDER, ignore_errors=True)
    ssh_key, public = (None, "") if ssh_keys else make_own_key(plan.root)
    plain = format_secrets({plan.token_key: token}, {}, ssh_keys or ((OWN_KEY, public),))
    create_sops_file(path, plain.encode(), mode=_READABLE)
    return new_key, ssh_key


def _write(path: Path, text: str) -> None:
    _make_folder(path.parent)
    files.replace_file(path, text.encode(), mode=_READABLE)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise FileError.from_os_error(err, "make the folder", folder) from err


def _keep(path: Path, undo: contextlib.ExitStack) -> None:
    """Put a file back as it was when the block ends early."""
    is_folder_new = not path.parent.exists()
    try:
        before: bytes | None = path.read_bytes()
        mode = path.stat().st_mode & 0o777
    except FileNotFoundError:
        before, mode = None, _READABLE
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err

    def restore() -> None:
        with contextlib.suppress(OSError, FileError):
            if before is None:
                path.unlink(missing_ok=True)
                if is_folder_new:
                    path.parent.rmdir()
            else:
                files.replace_file(path, before, mode=mode)

    undo.callback(restore)
