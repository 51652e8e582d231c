"""What the files of a cluster say, before defaults: fields, nodes, secrets, and the place of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.sources.cluster.fields import ClusterFields, NodeFields

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.base.errors import Location
    from stackyard.sources.site.document import Key, LocatedValues

__all__ = ["ClusterInput", "InputPlaces"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputPlaces:
    """Where the fields of a cluster are, whatever its files are called.

    Attributes:
        main: The file with the fields of the cluster.
        nodes: The file with the nodes.
        paths: Where a field is in the main file, if not at its top level under its own name.
        secrets: The places of secret fields in their own file.
    """

    main: LocatedValues
    nodes: LocatedValues
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    secrets: Mapping[str, Location] = field(default_factory=dict)

    def place(self, *keys: Key) -> Location:
        """Return where a value is, or the nearest place above it: `node_cidr`, or `nodes`, 0, `address`."""
        file, path = self._find(keys)
        return self.secrets.get(str(keys[0])) or file.place(path)

    def key_place(self, *keys: Key) -> Location:
        """Return where the key of a value is."""
        file, path = self._find(keys)
        return self.secrets.get(str(keys[0])) or file.key_place(path)

    def name(self, *keys: Key) -> str:
        """Return what the file of the user calls a field; one of a node begins with the name of the node."""
        file, path = self._find(keys)
        if path[0] == "nodes" and len(path) > 1 and self.has(*path[:2], "name"):
            path = (str(file.data["nodes"][path[1]]["name"]), *path[2:])
        return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")

    def has(self, *keys: Key) -> bool:
        """Return whether the file says something there, also where it is wrong."""
        file, path = self._find(keys)
        value: Any = file.data
        for key in path:
            try:
                value = value[key]
            except (KeyError, IndexError, TypeError):
                return False
        return True

    def _find(self, keys: tuple[Key, ...]) -> tuple[LocatedValues, tuple[Key, ...]]:
        if keys[0] == "nodes":
            return self.nodes, keys
        return self.main, (*self.paths.get(str(keys[0]), keys[:1]), *keys[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterInput:
    """The files of a cluster; fields that are wrong are left out, and findings say so.

    Attributes:
        folder: The folder with the files.
        fields: The fields of the cluster.
        nodes: The nodes, in the order of the file.
        places: Where everything is.
        given: The plain values of the fields that were given, by their flat names; no secret.
        tables: The tables of a TOML file, without secrets.
        secrets: The secret fields.
        secret_names: The names of the secret fields, also of those that could not be decrypted.
        files: The files that were read.
        are_secrets_encrypted: Whether the secrets are in the encrypted file.
        known_hosts: The Proxmox node of each node that the generated files have, by its name.
    """

    folder: Path
    fields: ClusterFields = field(default_factory=ClusterFields)
    nodes: tuple[NodeFields, ...] = ()
    places: InputPlaces
    given: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret_names: frozenset[str] = frozenset()
    files: tuple[Path, ...] = ()
    are_secrets_encrypted: bool = False
    known_hosts: Mapping[str, str] = field(default_factory=dict)

    def is_given(self, name: str) -> bool:
        """Return whether a field of the cluster was given, and is valid."""
        return getattr(self.fields, name) is not None

    def is_wrong(self, name: str) -> bool:
        """Return whether a field of the cluster was given, and left out because it is wrong by itself."""
        return not self.is_given(name) and self.places.has(name)
