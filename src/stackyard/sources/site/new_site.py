"""A site to start with: commented, valid, and made for a lab or a node of Proxmox VE."""

from __future__ import annotations

import importlib.resources
from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from stackyard.base import directories, files
from stackyard.base.errors import InvalidInputError, Location
from stackyard.secrets import Keyring, create_sops_file, user_recipient
from stackyard.sources.site.discovery import SITE_FILE
from stackyard.sources.site.load import Site
from stackyard.sources.site.pull import OWN_KEY_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from importlib.resources.abc import Traversable
    from pathlib import Path

__all__ = [
    "CreatedSite",
    "FolderInUseError",
    "LabAccess",
    "format_secrets",
    "format_sops_rules",
    "make_own_key",
    "start_site",
    "starter_files",
]

# Files of a site are for everyone who may read the folder; what is secret is encrypted.
_READABLE = 0o644
# What the key of the site is called among the others.
OWN_KEY = "site"
_RENAMED = {"gitignore": ".gitignore"}
_BRIDGE = "vmbr0"


class FolderInUseError(InvalidInputError):
    """A new site is to be created in a folder that holds something already."""

    code = "E-INIT-FOLDER"
    summary = "The folder of the new site is not empty"
    default_remedy = "Name a folder that is new or empty."


@dataclass(frozen=True, slots=True, kw_only=True)
class LabAccess:
    """How a lab is reached.

    Attributes:
        url: Its API.
        fingerprint: That of its certificate.
        api_token: Opens the API.
        password: The password of root on its nodes.
        nodes: The names of its nodes.
        ssh_ports: The port of each node's SSH.
    """

    url: str
    fingerprint: str
    api_token: str
    password: str
    nodes: tuple[str, ...]
    ssh_ports: tuple[int, ...]

    def __repr__(self) -> str:
        return f"LabAccess(url={self.url!r}, nodes={self.nodes!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedSite:
    """A site that was created.

    Attributes:
        root: Its folder.
        files: What was written, in the order of names.
        recipient: The public key that its secrets are encrypted for.
        new_key: The file of the private key, where one had to be created.
        ssh_key: The file of the private SSH key that was made for the site, because the user has none.
    """

    root: Path
    files: tuple[str, ...]
    recipient: str
    new_key: Path | None
    ssh_key: Path | None = None


def start_site(folder: Path, lab: LabAccess, *, ssh_keys: Sequence[tuple[str, str]] = ()) -> CreatedSite:
    """Make a site in a new or empty folder.

    Args:
        folder: Where; made if need be.
        lab: The lab that its node is.
        ssh_keys: Public keys of the user, by name; without any, a key pair is made for the site.

    Raises:
        FolderInUseError: There is something in the folder.
        FileError: It cannot be written.
        KeyringError: The user's age key cannot be used.
    """
    _require_empty(folder)
    recipient, new_key = user_recipient(Keyring())
    folder.mkdir(parents=True, exist_ok=True)
    written = [_write(folder, name, content) for name, content in _files(lab, recipient)]
    ssh_key, public = (None, "") if ssh_keys else make_own_key(folder)
    keys = ssh_keys or ((OWN_KEY, public),)
    plain = format_secrets({"lab": lab.api_token}, _node_passwords(lab), keys)
    create_sops_file(folder / "secrets.yaml", plain.encode(), (recipient,), mode=_READABLE)
    Site.load(folder)
    return CreatedSite(
        root=folder,
        files=tuple(sorted([*written, "secrets.yaml"])),
        recipient=recipient,
        new_key=new_key,
        ssh_key=ssh_key,
    )


def make_own_key(folder: Path) -> tuple[Path, str]:
    """Make a key pair to log in to guests with, which stays on this machine; return file and public half.

    Raises:
        FileError: It cannot be written.
    """
    from stackyard.clients.ssh.keys import new_key_pair  # lazy: cryptography, for users without a key

    pair, path = new_key_pair(), folder / OWN_KEY_FILE
    directories.ensure_private(path.parent)
    files.replace_file(path, pair.private.encode())
    return path, pair.public


def _require_empty(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FolderInUseError(f"{folder} is there already, and not empty.", where=Location(str(folder)))


def _write(folder: Path, name: str, content: str) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    files.replace_file(path, content.encode(), mode=_READABLE)
    return name


def _files(lab: LabAccess, recipient: str) -> Iterator[tuple[str, str]]:
    yield from starter_files("lab")
    for index, node in enumerate(lab.nodes):
        name = "lab" if index == 0 else f"lab-{node}"
        yield f"nodes/{name}.yaml", _node(lab, index, node)
    yield ".sops.yaml", format_sops_rules(recipient)


def starter_files(node: str, *, bridge: str = _BRIDGE) -> Iterator[tuple[str, str]]:
    """Return the files that every new site begins with: their names and their texts, without any node.

    Args:
        node: The name of the node file that its envs name.
        bridge: Where its guests plug in.
    """
    folder = importlib.resources.files("stackyard.sources.site") / "starter"
    for name, text in _copy_files(folder, ""):
        if name.startswith("envs/"):
            text = text.replace("node: lab\n", f"node: {node}\n").replace(
                "nodes/lab.yaml", f"nodes/{node}.yaml"
            )
        if name == SITE_FILE:
            text = text.replace(f"bridge: {_BRIDGE}\n", f"bridge: {bridge}\n")
        yield name, text


def _copy_files(folder: Traversable, above: str) -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _copy_files(entry, f"{above}{entry.name}/")
        else:
            yield f"{above}{_RENAMED.get(entry.name, entry.name)}", entry.read_text(encoding="utf-8")


def _node(lab: LabAccess, index: int, node: str) -> str:
    return (
        "# A node of the lab, which `stackyard lab up` starts; a node of your own looks the same.\n"
        f"node: {node}\n"
        f"api_endpoint: {lab.url}\n"
        "# Names `api_tokens` in secrets.yaml.\n"
        "api_token: lab\n"
        "# The SHA-256 of its certificate, which no authority vouches for.\n"
        f'api_fingerprint: "{lab.fingerprint}"\n'
        "# Where disks go.\n"
        "datastore: local-lvm\n"
        "ssh_user: root\n"
        f"ssh_port: {lab.ssh_ports[index]}\n"
        "# Guests of the lab are reached through it; leave this out where you reach them directly.\n"
        "ssh_jump: true\n"
        "# For guests that fetch their specs from here, with a lab of `stackyard lab up --expose 44443`:\n"
        "# controller_address: 10.31.0.1\n"
        "# controller_port: 44443\n"
    )


def format_sops_rules(recipient: str) -> str:
    """Return the rules of SOPS for a site whose secrets one key opens."""
    return (
        "# Who can read secrets.yaml: add public keys of others here, then `stackyard secrets rotate`.\n"
        "creation_rules:\n"
        "  - path_regex: secrets\\.ya?ml$\n"
        f"    age: {recipient}\n"
    )


def format_secrets(
    api_tokens: Mapping[str, str], passwords: Mapping[str, str], ssh_keys: Sequence[tuple[str, str]]
) -> str:
    """Return the secrets of a new site, to be encrypted.

    Args:
        api_tokens: Tokens by the name that nodes give.
        passwords: Passwords by their name.
        ssh_keys: Public keys by name.
    """

    def quote(text: str) -> str:
        return yaml.safe_dump(text, default_style='"', width=10**6).strip()

    lines = [
        "# By the name that `api_token` of a node gives: USER@REALM!NAME=SECRET.",
        "api_tokens:",
        *(f"  {name}: {quote(token)}" for name, token in api_tokens.items()),
        "# `node_NAME` opens SSH on a node; `vm_root`, a crypt hash, would be root's password in guests.",
        "passwords:" if passwords else "passwords: {}",
        *(f"  {name}: {quote(password)}" for name, password in passwords.items()),
        "# Public keys, for the users of guests.",
        "ssh_keys:" if ssh_keys else "ssh_keys: {}",
        *(f"  {name}: {quote(key)}" for name, key in ssh_keys),
    ]
    return "\n".join(lines) + "\n"


def _node_passwords(lab: LabAccess) -> dict[str, str]:
    names = ["lab", *(f"lab-{node}" for node in lab.nodes[1:])]
    return {f"node_{name}": lab.password for name in names}
