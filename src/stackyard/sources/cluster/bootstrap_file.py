"""`bootstrap.yaml`: what a cluster gets once its Kubernetes API answers."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.errors import Location
from stackyard.desired.values import Line, Many, Value
from stackyard.secrets.check.patterns import find_secrets
from stackyard.sources.cluster.bootstrap_fields import (
    ChartFields,
    FluxFields,
    LayerFields,
    NetworkFields,
    OperatorFields,
)
from stackyard.sources.cluster.fields import list_secret_names
from stackyard.sources.cluster.shape import MISSING, keep_valid
from stackyard.sources.cluster.storage_fields import StorageFields
from stackyard.sources.site.document import Document, format_path, read_document

__all__ = [
    "BOOTSTRAP_FILE",
    "BootstrapFields",
    "ChartFields",
    "FluxFields",
    "LayerFields",
    "NetworkFields",
    "OperatorFields",
    "load_bootstrap",
    "read_bootstrap",
]

BOOTSTRAP_FILE = "bootstrap.yaml"
MISSING_FILE = Kind(
    code="E-CLUSTER-BOOTSTRAP-FILE",
    summary="bootstrap.yaml names a file that does not exist",
    remedy="Correct the path, which is from the folder of the cluster, or create the file.",
)
SECRET_INSIDE = Kind(
    code="E-CLUSTER-BOOTSTRAP-SECRET",
    summary="bootstrap.yaml has a secret in clear",
    remedy="Move it to cluster.sops.yaml or another encrypted file; if it was in git, replace it.",
)
CONTRADICTION = Kind(
    code="E-CLUSTER-BOOTSTRAP-BOTH",
    summary="Fields of bootstrap.yaml contradict each other",
    remedy="Keep one of them; docs/reference/bootstrap.md says what each is for.",
)
UNKNOWN_SECRET = Kind(
    code="E-CLUSTER-BOOTSTRAP-TOKEN",
    summary="`flux.token` is not the name of a secret field",
    remedy="Write the name of a field of cluster.sops.yaml, such as git_token; the token itself goes there.",
)

_Path = tuple[str | int, ...]


class BootstrapFields(Value):
    """What a cluster gets once its Kubernetes API answers, and the storage that it needs before."""

    storage: Annotated[
        StorageFields | None, Field(description="Datasets on a TrueNAS, which come before the VMs.")
    ] = None
    network: Annotated[
        NetworkFields | Literal["none"] | None,
        Field(description="The network plugin. `none` if the cluster gets one in another way; else Cilium."),
    ] = None
    charts: Annotated[Many[ChartFields], Field(description="Helm charts that come before Flux.")] = ()
    flux: Annotated[FluxFields | None, Field(description="Flux; absent for a cluster without.")] = None
    secrets: Annotated[
        Many[Line], Field(description="Files with Secrets of Kubernetes, encrypted with SOPS.")
    ] = ()


def load_bootstrap(folder: Path) -> BootstrapFields:
    """Return what the file of a cluster says; a cluster without the file gets Cilium and nothing else.

    Args:
        folder: The folder of the cluster.

    Raises:
        InvalidInputError: Something is wrong with it; the error carries every problem.
        FileError: It is there and cannot be read.
    """
    found = Diagnostics()
    fields = read_bootstrap(folder, found)
    found.raise_errors(format_path(folder / BOOTSTRAP_FILE))
    return fields


def read_bootstrap(folder: Path, found: Diagnostics) -> BootstrapFields:
    """Read the file of a cluster and keep what is wrong with it; see `load_bootstrap`."""
    path = folder / BOOTSTRAP_FILE
    if not path.exists() and not path.is_symlink():
        return BootstrapFields()
    document = read_document(path, found)
    if document is None:
        return BootstrapFields()
    for match in find_secrets(document.text):
        found.add(SECRET_INSIDE, f"There is {match.name}.", Location(document.path, match.line))
    # A value may be a secret in the wrong place: findings name fields, and quote nothing.
    fields, _ = keep_valid(BootstrapFields, document, found, is_secret=True)
    _check(fields, document, found)
    for keys, name in _list_files(fields):
        if not (folder / name).is_file():
            found.add(MISSING_FILE, f"There is no file {name}.", document.place(keys))
    return fields


def _network_of(fields: BootstrapFields) -> NetworkFields:
    return fields.network if isinstance(fields.network, NetworkFields) else NetworkFields()


def _check(fields: BootstrapFields, document: Document, found: Diagnostics) -> None:
    network, flux = _network_of(fields), fields.flux or FluxFields()
    operator = flux.operator
    both: list[tuple[bool, str, _Path]] = [
        (
            network.manifests is not None
            and (network.cilium_version is not None or network.cilium_values is not None),
            "`manifests` and Cilium are both given",
            ("network", "manifests"),
        ),
        (
            flux.manifests is not None and operator is not None,
            "`manifests` and `operator` both install Flux",
            ("flux", "operator"),
        ),
        (
            flux.manifests is not None and (flux.version is not None or bool(flux.components)),
            "`manifests` are of one version and have their components",
            ("flux", "manifests"),
        ),
        (
            operator is not None and (operator.manifests is None) is (operator.version is None),
            "`operator` needs `version` or `manifests`, and not both",
            ("flux", "operator"),
        ),
    ]
    for is_wrong, detail, keys in both:
        if is_wrong:
            found.add(CONTRADICTION, f"{detail}.", document.place(keys))
    if flux.token is not None and flux.token not in list_secret_names():
        found.add(UNKNOWN_SECRET, "There is no secret field of that name.", document.place(("flux", "token")))
    _check_charts(fields.charts, document, found)


def _check_charts(charts: tuple[ChartFields, ...], document: Document, found: Diagnostics) -> None:
    names: list[str] = []
    for number, one in enumerate(charts):
        place = document.place(("charts", number))
        for field in ("name", "chart"):
            if getattr(one, field) is None:
                found.add(MISSING, f"A chart has no `{field}`.", place)
        is_folder = (one.chart or "").startswith(".")
        if is_folder and (one.version is not None or one.repository is not None):
            found.add(CONTRADICTION, "A folder has neither `version` nor `repository`.", place)
        if not is_folder and one.version is None:
            found.add(MISSING, "A chart has no `version`: each run could apply another one.", place)
        if one.name in names:
            found.add(CONTRADICTION, f"The chart {one.name} is there twice.", place)
        for name in one.after:
            if name not in names:
                detail = f"The chart waits for {name}, which does not come before it."
                found.add(CONTRADICTION, detail, place)
        names.append(one.name or "")


def _list_files(fields: BootstrapFields) -> list[tuple[_Path, str]]:
    """Return the files that are named, each with where it is named."""
    network, flux = _network_of(fields), fields.flux or FluxFields()
    operator = flux.operator or OperatorFields()
    named: list[tuple[_Path, str | None]] = [
        (("storage", "authority"), None if fields.storage is None else fields.storage.authority),
        (("network", "manifests"), network.manifests),
        (("flux", "manifests"), flux.manifests),
        (("flux", "operator", "manifests"), operator.manifests),
        (("flux", "deploy_key"), flux.deploy_key),
        (("flux", "known_hosts"), flux.known_hosts),
        (("flux", "authority"), flux.authority),
        *((("charts", number, "values_file"), one.values_file) for number, one in enumerate(fields.charts)),
        *((("secrets", number), name) for number, name in enumerate(fields.secrets)),
    ]
    return [(keys, name) for keys, name in named if name is not None]
