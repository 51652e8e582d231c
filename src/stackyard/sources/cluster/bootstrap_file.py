"""`bootstrap.yaml`: what a cluster gets once its Kubernetes API answers."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.desired.values import Line, Many, Value
from stackyard.sources.cluster.shape import keep_valid
from stackyard.sources.cluster.storage_fields import StorageFields
from stackyard.sources.site.document import format_path, read_document

__all__ = [
    "BOOTSTRAP_FILE",
    "BootstrapFields",
    "FluxFields",
    "LayerFields",
    "NetworkFields",
    "load_bootstrap",
]

BOOTSTRAP_FILE = "bootstrap.yaml"
MISSING_FILE = Kind(
    code="E-CLUSTER-BOOTSTRAP-FILE",
    summary="bootstrap.yaml names a file that does not exist",
    remedy="Correct the path, which is from the folder of the cluster, or create the file.",
)


class NetworkFields(Value):
    """The network plugin: manifests of your own, or Cilium, which `helm` renders."""

    manifests: Line | None = None
    cilium_version: Line | None = None
    cilium_values: dict[str, Any] | None = None


class LayerFields(Value):
    """A part of the repository that Flux applies as a whole, after the parts that it names."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
    path: Line
    after: Many[Line] = ()


class FluxFields(Value):
    """Flux, and the repository that it applies."""

    manifests: Line | None = None
    url: Line | None = None
    branch: Line = "main"
    deploy_key: Line | None = None
    known_hosts: Line | None = None
    folder: Line = "kubernetes"
    layers: Many[LayerFields] | None = None


class BootstrapFields(Value):
    """What a cluster gets once its Kubernetes API answers, and the storage that it needs before."""

    storage: StorageFields | None = None
    network: NetworkFields | None = None
    flux: FluxFields | None = None
    secrets: Many[Line] = ()


def load_bootstrap(folder: Path) -> BootstrapFields | None:
    """Read the file of a cluster; None where it has none.

    Args:
        folder: The folder of the cluster.

    Raises:
        InvalidInputError: Something is wrong with it; the error carries every problem.
        FileError: It is there and cannot be read.
    """
    path = folder / BOOTSTRAP_FILE
    if not path.exists():
        return None
    found = Diagnostics()
    document = read_document(path, found)
    fields = BootstrapFields()
    if document is not None:
        fields, _ = keep_valid(BootstrapFields, document, found)
        for keys, name in _list_files(fields):
            if not (folder / name).is_file():
                found.add(MISSING_FILE, f"There is no file {name}.", document.place(keys))
    found.raise_errors(format_path(path))
    return fields


def _list_files(fields: BootstrapFields) -> list[tuple[tuple[str | int, ...], str]]:
    """Return the files that are named, each with where it is named."""
    network, flux = fields.network or NetworkFields(), fields.flux or FluxFields()
    named: list[tuple[tuple[str | int, ...], str | None]] = [
        (("storage", "authority"), None if fields.storage is None else fields.storage.authority),
        (("network", "manifests"), network.manifests),
        (("flux", "manifests"), flux.manifests),
        (("flux", "deploy_key"), flux.deploy_key),
        (("flux", "known_hosts"), flux.known_hosts),
        *((("secrets", number), name) for number, name in enumerate(fields.secrets)),
    ]
    return [(keys, name) for keys, name in named if name is not None]
