"""A whole cluster: read, checked and resolved."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostics
from stackyard.sources.cluster.build import build_cluster
from stackyard.sources.cluster.checks import check_cluster
from stackyard.sources.cluster.names import name_of_folder
from stackyard.sources.cluster.read import read_input
from stackyard.sources.site.document import format_path

if TYPE_CHECKING:
    from stackyard.base.diagnostics import Diagnostic
    from stackyard.secrets import Keyring
    from stackyard.sources.cluster.input import ClusterInput
    from stackyard.sources.cluster.model import Cluster

__all__ = ["OpenedCluster", "load_cluster", "open_cluster"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedCluster:
    """A cluster that was read, with what is wrong with it.

    Attributes:
        name: Its name.
        folder: The folder with its files.
        found: Everything that is wrong with it.
        read: What its files say; None where one of them cannot be read at all.
        cluster: The resolved cluster; None where something is wrong.
    """

    name: str
    folder: Path
    found: Diagnostics
    read: ClusterInput | None
    cluster: Cluster | None

    def require(self) -> Cluster:
        """Return the cluster.

        Raises:
            InvalidInputError: Something is wrong; the error carries every problem.
        """
        self.found.raise_errors(f"The cluster in {format_path(self.folder)}")
        if self.cluster is None:
            raise ValueError("a cluster without problems was not built")
        return self.cluster


def load_cluster(
    folder: str | Path, *, keyring: Keyring | None = None, are_secrets_needed: bool = True
) -> Cluster:
    """Read a cluster in which nothing is wrong.

    Args:
        folder: The folder with `cluster.yaml` and `nodes.yaml`, or with `cluster.toml`.
        keyring: The keys of the user; those of the environment when absent.
        are_secrets_needed: Whether secrets that cannot be decrypted are an error; otherwise they are absent.

    Raises:
        InvalidInputError: Something is wrong with it; the error carries every problem.
        SecretsLockedError: The secrets are needed, and encrypted for others.
        FileError: A file is there and cannot be read.
    """
    return open_cluster(folder, keyring=keyring, are_secrets_needed=are_secrets_needed).require()


def open_cluster(
    folder: str | Path, *, keyring: Keyring | None = None, are_secrets_needed: bool = True
) -> OpenedCluster:
    """Read a cluster and keep what is wrong with it.

    Args:
        folder: The folder with its files.
        keyring: The keys of the user; those of the environment when absent.
        are_secrets_needed: Whether secrets that cannot be decrypted are an error, and not only a warning.

    Raises:
        SecretsLockedError: The secrets are needed, and encrypted for others.
        InvalidInputError: The encrypted file was cut off or changed.
    """
    folder = Path(folder)
    found = Diagnostics()
    read = read_input(folder, found, keyring=keyring, are_secrets_needed=are_secrets_needed)
    name = (None if read is None else read.fields.cluster_name) or name_of_folder(folder)
    if read is not None:
        check_cluster(read, found)
    ordered = Diagnostics()
    ordered.extend(sorted(found, key=_order))
    cluster = None if read is None or ordered.errors else build_cluster(read, name)
    return OpenedCluster(name=name, folder=folder, found=ordered, read=read, cluster=cluster)


def _order(finding: Diagnostic) -> tuple[str, int, int]:
    """Return what puts findings in the order of a reader: file by file, from top to bottom."""
    where = finding.where
    return ("", 0, 0) if where is None else (where.path, where.line or 0, where.column or 0)
