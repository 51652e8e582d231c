"""Reading the files of a cluster: YAML or TOML, and the encrypted file beside them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.errors import Location
from stackyard.sources.cluster.fields import (
    REQUIRED,
    REQUIRED_OF_NODE,
    ClusterFields,
    NodeFields,
    NodesFile,
    cluster_model,
    list_secret_names,
    whole_model,
)
from stackyard.sources.cluster.host_record import read_host_record
from stackyard.sources.cluster.input import ClusterInput, InputPlaces
from stackyard.sources.cluster.secret_fields import read_secret_fields
from stackyard.sources.cluster.shape import MISSING, keep_valid
from stackyard.sources.cluster.toml_layout import FIELDS, SECRETS, flatten, take_secrets, toml_model
from stackyard.sources.cluster.toml_text import TomlDocument, read_toml
from stackyard.sources.site.document import Document, format_path, read_document

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.secrets import Keyring

__all__ = ["CLUSTER_FILE", "NODES_FILE", "SECRETS_FILE", "TOML_FILE", "read_input"]

CLUSTER_FILE = "cluster.yaml"
NODES_FILE = "nodes.yaml"
SECRETS_FILE = "cluster.sops.yaml"
TOML_FILE = "cluster.toml"

TWO_FORMS = Kind(
    code="E-CLUSTER-TWO-FORMS",
    summary="A folder has both cluster.yaml and cluster.toml",
    remedy="Keep one of the two: they would describe two clusters in one place.",
)
NO_FILE = Kind(
    code="E-CLUSTER-NO-FILE",
    summary="A file of the cluster is missing",
    remedy="Write it, or let `stackyard cluster init` make one to start with.",
)
NO_NODES = Kind(
    code="E-CLUSTER-NO-NODES",
    summary="The cluster has no nodes",
    remedy="Add at least one node that is a controller.",
)


def read_input(
    folder: Path, found: Diagnostics, *, keyring: Keyring | None = None, are_secrets_needed: bool = True
) -> ClusterInput | None:
    """Read the files of a cluster; None, and findings, where a whole file cannot be used.

    Args:
        folder: The folder with the files.
        found: Takes the findings.
        keyring: The keys of the user; those of the environment when absent.
        are_secrets_needed: Whether secrets that cannot be decrypted are an error, and not only a warning.

    Raises:
        SecretsLockedError: The secrets are needed, and encrypted for others.
        InvalidInputError: The encrypted file was cut off or changed.
        FileError: A file is there and cannot be read.
    """
    if (folder / TOML_FILE).exists() and (folder / CLUSTER_FILE).exists():
        detail = f"{format_path(folder)} has {CLUSTER_FILE} and {TOML_FILE}."
        found.add(TWO_FORMS, detail, Location(format_path(folder / TOML_FILE)))
        return None
    opened = _read_toml(folder, found) if (folder / TOML_FILE).exists() else _read_yaml(folder, found)
    if opened is None:
        return None
    places, clear, files = opened
    encrypted = read_secret_fields(
        folder / SECRETS_FILE, clear, places, found, keyring=keyring, is_needed=are_secrets_needed
    )
    places = InputPlaces(main=places.main, nodes=places.nodes, paths=places.paths, secrets=encrypted.places)
    fields, given, tables = _read_cluster(places, found)
    return ClusterInput(
        folder=folder,
        fields=fields,
        nodes=_read_nodes(places, found),
        places=places,
        given=MappingProxyType(given),
        tables=MappingProxyType(tables),
        secrets=MappingProxyType(encrypted.values),
        secret_names=encrypted.names,
        files=(*files, *encrypted.files),
        are_secrets_encrypted=bool(encrypted.files),
        known_hosts=read_host_record(folder) if fields.proxmox_nodes else {},
    )


def _read_yaml(
    folder: Path, found: Diagnostics
) -> tuple[InputPlaces, dict[str, Any], tuple[Path, ...]] | None:
    paths = folder / CLUSTER_FILE, folder / NODES_FILE
    documents = [_read_document(path, found) for path in paths]
    cluster, nodes = documents
    clear: dict[str, Any] = {}
    if cluster is not None:
        secret = list_secret_names()
        clear = {name: cluster.data.pop(name) for name in list(cluster.data) if name in secret}
        _drop_blanks(cluster.data, ClusterFields)
    if cluster is not None and nodes is not None:
        return InputPlaces(main=cluster, nodes=nodes), clear, paths
    # The other file is checked all the same: its problems need no second run.
    if cluster is not None:
        _read_cluster(InputPlaces(main=cluster, nodes=cluster), found)
    if nodes is not None:
        _read_nodes(InputPlaces(main=nodes, nodes=nodes), found)
    return None


def _read_toml(
    folder: Path, found: Diagnostics
) -> tuple[InputPlaces, dict[str, Any], tuple[Path, ...]] | None:
    path = folder / TOML_FILE
    document = read_toml(path, found)
    if document is None:
        return None
    clear = take_secrets(document.data)
    _drop_blank_texts(document.data)
    entries = {"nodes": document.data.pop("nodes")} if "nodes" in document.data else {}
    nodes = TomlDocument(document.path, document.text, entries)
    return InputPlaces(main=document, nodes=nodes, paths={**FIELDS, **SECRETS}), clear, (path,)


def _read_document(path: Path, found: Diagnostics) -> Document | None:
    if not path.exists() and not path.is_symlink():
        found.add(NO_FILE, f"There is no {format_path(path)}.", Location(format_path(path)))
        return None
    return read_document(path, found)


def _read_cluster(
    places: InputPlaces, found: Diagnostics
) -> tuple[ClusterFields, dict[str, Any], dict[str, Any]]:
    """Return the fields, their plain values, and the tables of a TOML file."""
    for name in REQUIRED:
        if not places.has(name):
            found.add(MISSING, f"`{places.name(name)}` is missing.", places.place(name))
    if places.paths:
        _, tables = keep_valid(toml_model(), places.main, found, known=toml_model(is_whole=True))
        given = flatten(tables)
        return cluster_model().model_validate(given), given, tables
    fields, given = keep_valid(cluster_model(), places.main, found, known=whole_model())
    return fields, given, {}


def _read_nodes(places: InputPlaces, found: Diagnostics) -> tuple[NodeFields, ...]:
    data = places.nodes.data
    entries = data.get("nodes")
    if entries is None or entries == []:
        where = places.nodes.key_place(["nodes"])
        found.add(NO_NODES, f"`nodes` {'is missing' if entries is None else 'is empty'}.", where)
        return ()
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            _drop_blanks(entry, NodeFields)
    given: list[Mapping[str, Any] | None] = [
        dict(entry) if isinstance(entry, dict) else None
        for entry in (entries if isinstance(entries, list) else ())
    ]
    file, _ = keep_valid(NodesFile, places.nodes, found)
    for index, entry in enumerate(given):
        missing = [name for name in REQUIRED_OF_NODE if entry is not None and name not in entry]
        for name in missing:
            where = places.place("nodes", index)
            found.add(MISSING, f"`{places.name('nodes', index, name)}` is missing.", where)
    return file.nodes or ()


def _drop_blank_texts(value: Any) -> None:
    """Leave out texts that have nothing in them, in all tables."""
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _drop_blank_texts(inner)
    if isinstance(value, dict):
        for key in [key for key, inner in value.items() if inner == ""]:
            del value[key]


def _drop_blanks(data: dict[str, Any], model: type[ClusterFields | NodeFields]) -> None:
    """Leave out fields of ours that have nothing in them: such files come as templates to fill in."""
    for name in [name for name, value in data.items() if value in ("", None) and name in model.model_fields]:
        del data[name]
