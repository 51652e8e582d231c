"""Versions that stackyard knows, and those that go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostics, Kind, Severity
from stackyard.sources.cluster.resolve import choose_cluster_values

if TYPE_CHECKING:
    from stackyard.sources.cluster.input import ClusterInput

__all__ = ["check_versions"]

UNKNOWN_TALOS = Kind(
    code="W-CLUSTER-TALOS-VERSION",
    summary="This release of Talos is not known here",
    remedy="Nothing is refused; read the notes of the release, or use one of those that are known.",
    severity=Severity.WARNING,
)
OTHER_KUBERNETES = Kind(
    code="W-CLUSTER-KUBERNETES-VERSION",
    summary="This release of Talos does not support this release of Kubernetes",
    remedy="Set `kubernetes_version` to a release that it supports, or another `talos_version`.",
    severity=Severity.WARNING,
)
# The first and the last minor release of Kubernetes that each release of Talos supports, where known.
_TALOS: dict[str, tuple[int, int] | None] = {
    "1.10": (28, 33),
    "1.11": (29, 34),
    "1.12": (30, 35),
    "1.13": (31, 36),
    "1.14": None,
}


def check_versions(read: ClusterInput, found: Diagnostics) -> None:
    """Warn about releases that are not known, and about those that do not go together."""
    if read.is_wrong("talos_version") or read.is_wrong("kubernetes_version"):
        return
    chosen = choose_cluster_values(read)
    talos, kubernetes = chosen["talos_version"], chosen["kubernetes_version"]
    minor = talos.value.rpartition(".")[0] if "-" not in talos.value else ".".join(talos.value.split(".")[:2])
    if minor not in _TALOS:
        known = f"{min(_TALOS, key=_number)} to {max(_TALOS, key=_number)}"
        detail = f"{talos.value} is not one of {known}."
        found.add(UNKNOWN_TALOS, detail, read.places.place("talos_version"))
        return
    range_ = _TALOS[minor]
    major, release = (int(part) for part in kubernetes.value.split(".")[:2])
    if range_ is not None and not (major == 1 and range_[0] <= release <= range_[1]):
        given = next((name for name in ("kubernetes_version", "talos_version") if read.is_given(name)), None)
        supported = f"Talos {talos.value} supports Kubernetes 1.{range_[0]} to 1.{range_[1]}"
        detail = f"{supported}, and not {kubernetes.value}."
        found.add(OTHER_KUBERNETES, detail, read.places.place(given) if given else None)


def _number(minor: str) -> int:
    return int(minor.partition(".")[2])
