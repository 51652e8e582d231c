"""Helm charts as objects: `helm` renders them, and installs nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base import process
from stackyard.base.errors import InvalidInputError
from stackyard.base.redaction import Redactor
from stackyard.clients.kubernetes import parse_manifests

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.clients.kubernetes import KubernetesObject

__all__ = ["HelmChart", "HelmMissingError", "merge_values", "render_chart"]

_RENDERED_S = 120.0


class HelmMissingError(InvalidInputError):
    """A chart has to be rendered, and there is no helm."""

    code = "E-CLUSTER-HELM"
    summary = "A Helm chart cannot be rendered"
    default_remedy = "Put `helm` on PATH, or give the rendered manifests as a file; nothing was changed."


@dataclass(frozen=True, slots=True, kw_only=True)
class HelmChart:
    """A chart, and the values that it is rendered with.

    Attributes:
        release: The name of the release.
        chart: The chart: a name in `repository`, a folder, an archive, or an `oci://` address.
        namespace: Where its objects are.
        repository: The address of the chart's repository, where it needs one.
        version: The version of the chart; empty takes the newest.
        values: The values; they may be secret and go to helm's standard input.
        secrets: What of the values must not be shown.
    """

    release: str
    chart: str
    namespace: str
    repository: str = ""
    version: str = ""
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


async def render_chart(
    helm: Path | None, chart: HelmChart, *, kubernetes_version: str = ""
) -> tuple[KubernetesObject, ...]:
    """Let helm render a chart; nothing is installed by it, and its hooks are left out.

    Objects without a namespace belong into that of the release; helm itself would ask the cluster which
    kinds are in one.

    Args:
        helm: The program; None if there is none.
        chart: The chart.
        kubernetes_version: The version of the cluster; some charts depend on it.

    Raises:
        HelmMissingError: There is no helm.
        ProcessFailedError: helm refuses the chart, with its words.
        ManifestError: What it rendered is no manifest.
    """
    if helm is None:
        raise HelmMissingError(f"The chart {chart.chart} needs `helm`, which is not installed.")
    options = [
        *(("--repo", chart.repository) if chart.repository else ()),
        *(("--version", chart.version) if chart.version else ()),
        *(("--kube-version", kubernetes_version) if kubernetes_version else ()),
    ]
    argv = (str(helm), "template", chart.release, chart.chart, "--namespace", chart.namespace, *options)
    command = process.Command(
        argv=(*argv, "--include-crds", "--no-hooks", "--values", "-"),
        env=process.environment(),
        stdin=orjson.dumps(chart.values),
        timeout_s=_RENDERED_S,
        redactor=Redactor(chart.secrets),
    )
    completed = await process.run(command)
    objects = parse_manifests(completed.stdout, f"the chart {chart.chart}")
    return tuple(_mark_owned(obj, chart) for obj in objects)


def _mark_owned(obj: KubernetesObject, chart: HelmChart) -> dict[str, Any]:
    """Name the release on an object, as helm does: so a release of that name can take it over later."""
    metadata = obj["metadata"]
    labels = {**(metadata.get("labels") or {}), "app.kubernetes.io/managed-by": "Helm"}
    annotations = {
        **(metadata.get("annotations") or {}),
        "meta.helm.sh/release-name": chart.release,
        "meta.helm.sh/release-namespace": chart.namespace,
    }
    return {**obj, "metadata": {**metadata, "labels": labels, "annotations": annotations}}


def merge_values(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Return values in which the second win; mappings are merged."""
    merged = dict(ours)
    for key, value in theirs.items():
        old = merged.get(key)
        merged[key] = merge_values(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged
