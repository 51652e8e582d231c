"""The part of a site that the guests of a subtree need, as the files of a site of its own."""

from __future__ import annotations

import io
import tarfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from stackyard.operator.delegation.credentials import KEY_FILE
from stackyard.sources.site.entities.images import UploadEntry
from stackyard.sources.site.names import PLACES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stackyard.sources.manifest.model import Manifest
    from stackyard.sources.site.load import Site

__all__ = ["InnerNode", "as_tar", "site_files"]

# What the controller and the SSH of an inner host are for its own guests.
CONTROLLER_PORT = 44443
API_PORT = 8006
_SECRETS = "secrets.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerNode:
    """What an inner host says of itself.

    Attributes:
        name: What the manifest calls it, and so its file.
        proxmox_name: What Proxmox calls it.
        address: Where its guests find it.
        fingerprint: The SHA-256 of the certificate of its API.
        datastore: Where disks go.
        file_datastore: Where images and snippets go.
        public_key: The public half of its own key pair.
        token: Opens its API.
    """

    name: str
    proxmox_name: str
    address: str
    fingerprint: str
    datastore: str
    file_datastore: str
    public_key: str
    token: str = field(repr=False)


def site_files(site: Site, subtree: Manifest, node: InnerNode) -> dict[str, bytes]:
    """Return the files of the site for an inner host, by path; `secrets.yaml` is for its owner alone.

    No other node, host, env or manifest is in it, of the secrets only those that guests of the subtree have,
    and no token but the one of the host itself.
    """
    wanted = _list_references(site, subtree)
    files = {"site.yaml": _dump(_settings(site, subtree, wanted))}
    for kind, folder in PLACES:
        for name in sorted(wanted.get(kind, ())):
            path = site.root / folder / f"{name}.yaml"
            if path.is_file():
                files[f"{folder}/{name}.yaml"] = path.read_bytes()
    for entry in site.settings.files.values():
        if isinstance(entry, UploadEntry) and (site.root / entry.path).is_file():
            files[entry.path] = (site.root / entry.path).read_bytes()
    files[f"nodes/{node.name}.yaml"] = _dump(_node(node))
    files[_SECRETS] = _dump(_secrets(site, subtree, node))
    return files


def as_tar(files: Mapping[str, bytes]) -> bytes:
    """Return files as an archive; the same files give the same bytes."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in sorted(files.items()):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o600
            archive.addfile(info, io.BytesIO(content))
    return whole.getvalue()


def _list_references(site: Site, subtree: Manifest) -> Mapping[str, set[str]]:
    """Return the names of the files that nodes refer to, and that these refer to in turn, by kind."""
    entries: list[Mapping[str, Any]] = [node.entry for node in subtree.nodes]
    templates = set(_list_names(entries, "template")) & set(site.templates)
    entries += [site.templates[name].places.data for name in sorted(templates)]
    presets = set(_list_names(entries, "preset", "vm_preset"))
    entries += [site.presets[name].places.data for name in sorted(presets & set(site.presets))]
    specs = set(_list_names(entries, "spec"))
    postures = {subtree.posture}
    for name in specs & set(site.specs):
        posture = site.specs[name].model.access.posture
        postures |= {posture} if posture else set()
    return {"templates": templates, "presets": presets, "specs": specs, "postures": postures}


def _list_names(entries: Iterable[Mapping[str, Any]], *keys: str) -> Iterator[str]:
    return (entry[key] for entry in entries for key in keys if isinstance(entry.get(key), str))


def _settings(site: Site, subtree: Manifest, wanted: Mapping[str, set[str]]) -> dict[str, Any]:
    """Return site.yaml for the host, which logs in to its guests with its own key."""
    del subtree, wanted
    said = {} if site.file is None else dict(site.file.places.data)
    defaults = {**(said.get("defaults") or {}), "ssh_key_file": KEY_FILE}
    for name in ("ssh_user", "host_user"):
        # On the host itself it is root who works.
        defaults.pop(name, None)
    # Guests fetch their specs from the host that they run on.
    for name in ("spec_server", "server_url", "spec_server_pin"):
        defaults.pop(name, None)
    # The run there uses the store of the outer run, which has the way to it.
    return {**{name: value for name, value in said.items() if name != "store"}, "defaults": defaults}


def _node(node: InnerNode) -> dict[str, Any]:
    return {
        "node": node.proxmox_name,
        "api_endpoint": f"https://127.0.0.1:{API_PORT}",
        "api_fingerprint": node.fingerprint,
        "datastore": node.datastore,
        "file_datastore": node.file_datastore,
        "ip": node.address,
        "ssh_user": "root",
        "controller_address": node.address,
        "controller_port": CONTROLLER_PORT,
    }


def _secrets(site: Site, subtree: Manifest, node: InnerNode) -> dict[str, Any]:
    """Return the secrets that guests of the subtree have; keys to sign with stay where they are."""
    known = site.secret_values
    names = {one.name for one in subtree.nodes}
    document: dict[str, Any] = {
        "api_tokens": {node.name: node.token},
        # Passwords of nodes are for those who are outside of them.
        "passwords": {name: text for name, text in known.passwords.items() if not name.startswith("node_")},
        "ssh_keys": {**known.ssh_keys, f"stackyard-{node.name}": node.public_key},
    }
    auth: dict[str, Any] = {
        "node_tokens": {name: token for name, token in known.auth.node_tokens.items() if name in names}
    }
    if known.auth.site_token is not None:
        auth["site_token"] = known.auth.site_token
    return {**document, "auth": auth}


def _dump(document: Mapping[str, Any]) -> bytes:
    return yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True).encode()
