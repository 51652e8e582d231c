"""The kinds that the double serves: the built-in ones, and those of CustomResourceDefinitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["BUILT_IN", "CRD_GROUP", "ServedKind", "read_definition"]

CRD_GROUP = "apiextensions.k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedKind:
    """A kind of objects.

    Attributes:
        group: Its group, empty for the core one.
        version: The version in which it is served.
        kind: Its name.
        plural: Its name in paths.
        is_namespaced: Whether its objects are in namespaces.
        has_status: Whether its status is written through a path of its own.
        short_names: What people type in place of its plural: `ns`.
        schema: The schema of its objects, where a definition gives one.
        is_custom: Whether a definition has made it.
    """

    group: str
    version: str
    kind: str
    plural: str
    is_namespaced: bool = True
    has_status: bool = False
    short_names: tuple[str, ...] = ()
    schema: Mapping[str, Any] = field(default_factory=dict, repr=False)
    is_custom: bool = False

    @property
    def api_version(self) -> str:
        """Its group and version."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """Its name in messages."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


_TABLE = """
v1 Namespace namespaces cluster status
v1 Node nodes cluster status
v1 PersistentVolume persistentvolumes cluster status
v1 Secret secrets
v1 ConfigMap configmaps
v1 ServiceAccount serviceaccounts
v1 Service services namespaced status
v1 Endpoints endpoints
v1 Event events
v1 Pod pods namespaced status
v1 PersistentVolumeClaim persistentvolumeclaims namespaced status
v1 ResourceQuota resourcequotas namespaced status
v1 LimitRange limitranges
apps/v1 Deployment deployments namespaced status
apps/v1 DaemonSet daemonsets namespaced status
apps/v1 StatefulSet statefulsets namespaced status
apps/v1 ReplicaSet replicasets namespaced status
batch/v1 Job jobs namespaced status
batch/v1 CronJob cronjobs namespaced status
rbac.authorization.k8s.io/v1 ClusterRole clusterroles cluster
rbac.authorization.k8s.io/v1 ClusterRoleBinding clusterrolebindings cluster
rbac.authorization.k8s.io/v1 Role roles
rbac.authorization.k8s.io/v1 RoleBinding rolebindings
networking.k8s.io/v1 NetworkPolicy networkpolicies
networking.k8s.io/v1 Ingress ingresses namespaced status
networking.k8s.io/v1 IngressClass ingressclasses cluster
policy/v1 PodDisruptionBudget poddisruptionbudgets namespaced status
scheduling.k8s.io/v1 PriorityClass priorityclasses cluster
storage.k8s.io/v1 StorageClass storageclasses cluster
storage.k8s.io/v1 CSIDriver csidrivers cluster
coordination.k8s.io/v1 Lease leases
autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers namespaced status
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration validatingwebhookconfigurations cluster
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration mutatingwebhookconfigurations cluster
apiextensions.k8s.io/v1 CustomResourceDefinition customresourcedefinitions cluster status
apiregistration.k8s.io/v1 APIService apiservices cluster status
"""
_SHORT = {
    "namespaces": "ns",
    "nodes": "no",
    "pods": "po",
    "services": "svc",
    "configmaps": "cm",
    "serviceaccounts": "sa",
    "events": "ev",
    "persistentvolumes": "pv",
    "persistentvolumeclaims": "pvc",
    "deployments": "deploy",
    "daemonsets": "ds",
    "statefulsets": "sts",
    "replicasets": "rs",
    "cronjobs": "cj",
    "ingresses": "ing",
    "storageclasses": "sc",
    "customresourcedefinitions": "crd crds",
}


def _read_table() -> Iterator[ServedKind]:
    for line in filter(None, _TABLE.splitlines()):
        api_version, kind, plural, *rest = line.split()
        group, _, version = api_version.rpartition("/")
        yield ServedKind(
            group=group,
            version=version,
            kind=kind,
            plural=plural,
            is_namespaced="cluster" not in rest,
            has_status="status" in rest,
            short_names=tuple(_SHORT.get(plural, "").split()),
        )


BUILT_IN: tuple[ServedKind, ...] = tuple(_read_table())


def read_definition(definition: Mapping[str, Any]) -> Iterator[ServedKind]:
    """Yield the kinds that a CustomResourceDefinition makes, one for each version that it serves."""
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    for version in spec.get("versions") or ():
        if version.get("served", True):
            yield ServedKind(
                group=str(spec.get("group", "")),
                version=str(version.get("name", "")),
                kind=str(names.get("kind", "")),
                plural=str(names.get("plural", "")),
                is_namespaced=spec.get("scope") == "Namespaced",
                has_status="status" in (version.get("subresources") or {}),
                short_names=tuple(map(str, names.get("shortNames") or ())),
                schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
                is_custom=True,
            )
