"""The only package that calls a Kubernetes API.

`read_kubeconfig` gives a `ClusterAccess`, and `KubernetesClient` sends requests to that cluster: `get`,
`find`, `list_objects`, `apply` (server-side, with conflicts reported by field and manager), `delete`, `watch`
(resumed after every break) and `wait_until`. `apply_set` applies many objects in the order that they need,
and removes what an earlier version of the set applied. `parse_manifests` reads objects from YAML.

Objects are plain mappings, as Kubernetes defines them. No value of a Secret and no credential is in an error.
"""

from __future__ import annotations

from stackyard.clients.kubernetes.apply import FIELD_MANAGER, Applied, ApplyOptions, Change, is_applied_by
from stackyard.clients.kubernetes.applyset import ApplySet, ApplySetResult, apply_set, look_at_set
from stackyard.clients.kubernetes.client import KubernetesClient, Selection
from stackyard.clients.kubernetes.failures import (
    Cause,
    FieldConflictError,
    KindUnknownError,
    KubeconfigError,
    KubernetesError,
    KubernetesForbiddenError,
    KubernetesLoginError,
    KubernetesRefusedError,
    KubernetesUnreachableError,
    ObjectMissingError,
    ObjectRejectedError,
    WaitTimeoutError,
)
from stackyard.clients.kubernetes.kinds import ResourceKind
from stackyard.clients.kubernetes.kubeconfig import ClusterAccess, parse_kubeconfig, read_kubeconfig
from stackyard.clients.kubernetes.manifests import parse_manifests, read_manifests
from stackyard.clients.kubernetes.references import KubernetesObject, ManifestError, ObjectReference, refer_to
from stackyard.clients.kubernetes.transport import Patience
from stackyard.clients.kubernetes.waits import (
    Expectation,
    OnWaiting,
    has_condition,
    is_established,
    is_gone,
    is_present,
    is_rolled_out,
    is_settled,
)
from stackyard.clients.kubernetes.watch import WatchChange, WatchEvent

__all__ = [
    "FIELD_MANAGER",
    "Applied",
    "ApplyOptions",
    "ApplySet",
    "ApplySetResult",
    "Cause",
    "Change",
    "ClusterAccess",
    "Expectation",
    "FieldConflictError",
    "KindUnknownError",
    "KubeconfigError",
    "KubernetesClient",
    "KubernetesError",
    "KubernetesForbiddenError",
    "KubernetesLoginError",
    "KubernetesObject",
    "KubernetesRefusedError",
    "KubernetesUnreachableError",
    "ManifestError",
    "ObjectMissingError",
    "ObjectReference",
    "ObjectRejectedError",
    "OnWaiting",
    "Patience",
    "ResourceKind",
    "Selection",
    "WaitTimeoutError",
    "WatchChange",
    "WatchEvent",
    "apply_set",
    "has_condition",
    "is_applied_by",
    "is_established",
    "is_gone",
    "is_present",
    "is_rolled_out",
    "is_settled",
    "look_at_set",
    "parse_kubeconfig",
    "parse_manifests",
    "read_kubeconfig",
    "read_manifests",
    "refer_to",
]
