"""The steps of storage, from the files of a cluster and its secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base import files
from stackyard.base.errors import InvalidInputError
from stackyard.bootstrap.run import PlannedStep
from stackyard.bootstrap.storage.dataset import DatasetStep, WantedDataset
from stackyard.clients.truenas import DatasetProperties, TrueNasEndpoint
from stackyard.sources.cluster.storage_fields import parse_size

if TYPE_CHECKING:
    from stackyard.sources.cluster.model import Cluster
    from stackyard.sources.cluster.storage_fields import DatasetFields, StorageFields

__all__ = ["StorageKeyError", "plan_storage_steps"]

_KEY = "truenas_api_key"


class StorageKeyError(InvalidInputError):
    """The cluster needs datasets, and has no key for TrueNAS."""

    code = "E-STORAGE-KEY"
    summary = "The key of TrueNAS is missing"
    default_remedy = (
        "Make a key in TrueNAS (user menu > My API Keys), and add it with `stackyard secrets edit "
        "cluster.sops.yaml` as `truenas_api_key`. Nothing was changed."
    )


def plan_storage_steps(cluster: Cluster, fields: StorageFields | None) -> tuple[PlannedStep, ...]:
    """Return the step that makes the datasets of a cluster; none where it needs none.

    TrueNAS is not asked yet. The step belongs before the VMs: whatever is wrong with the storage shows before
    anything else is made.

    Args:
        cluster: The cluster.
        fields: The section `storage` of its `bootstrap.yaml`.

    Raises:
        StorageKeyError: The cluster has no key for TrueNAS.
        FileError: The file of the authority cannot be read.
    """
    if fields is None:
        return ()
    key = cluster.secrets.get(_KEY, "").strip()
    if not key:
        raise StorageKeyError(f"The cluster {cluster.name} needs datasets, and has no `{_KEY}`.")
    endpoint = TrueNasEndpoint(
        url=fields.truenas,
        api_key=key,
        user=fields.user or "",
        fingerprint=fields.fingerprint or "",
        authority="" if fields.authority is None else files.read_text(cluster.folder / fields.authority),
    )
    # A parent sorts before its children.
    wanted = tuple(_make_wanted(one) for one in sorted(fields.datasets, key=lambda one: one.name.split("/")))
    step = DatasetStep(endpoint=endpoint, datasets=wanted)
    return (PlannedStep(step=step, title=f"Preparing datasets on {endpoint.label}"),)


def _make_wanted(fields: DatasetFields) -> WantedDataset:
    return WantedDataset(
        name=fields.name,
        properties=DatasetProperties(
            quota=None if fields.quota is None else parse_size(fields.quota),
            compression=fields.compression,
            sync=fields.sync,
            recordsize=fields.recordsize,
            atime=fields.atime,
            comment=fields.comment,
        ),
        may_update=fields.update,
    )
