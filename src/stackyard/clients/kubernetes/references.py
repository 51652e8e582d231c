"""Which object of a cluster: its kind, namespace and name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stackyard.base.errors import InvalidInputError
from stackyard.base.visible import on_one_line

__all__ = ["KubernetesObject", "ManifestError", "ObjectReference", "refer_to"]

KubernetesObject = Mapping[str, Any]


class ManifestError(InvalidInputError):
    """A manifest does not hold Kubernetes objects."""

    code = "E-KUBERNETES-OBJECT"
    summary = "A manifest does not hold Kubernetes objects"
    default_remedy = "Each document of the file needs `apiVersion`, `kind` and `metadata.name`."


@dataclass(frozen=True, slots=True, order=True)
class ObjectReference:
    """Names one object.

    Attributes:
        api_version: Its group and version, such as `apps/v1`.
        kind: Its kind, such as `Deployment`.
        name: Its name.
        namespace: Its namespace, empty for an object of the whole cluster.
    """

    api_version: str
    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return on_one_line(f"{self.kind} {place}")

    @property
    def group(self) -> str:
        """The group of its kind, empty for the core one."""
        return self.api_version.rpartition("/")[0]

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What makes it the same object in every version of its kind."""
        return self.group, self.kind, self.namespace, self.name


def refer_to(obj: KubernetesObject) -> ObjectReference:
    """Return the reference to an object.

    Raises:
        ManifestError: It lacks what names an object.
    """
    metadata = obj.get("metadata")
    parts = [obj.get("apiVersion"), obj.get("kind")]
    if isinstance(metadata, Mapping):
        parts += [metadata.get("name"), metadata.get("namespace") or ""]
    if len(parts) < 4 or not all(isinstance(part, str) for part in parts) or not all(parts[:3]):
        shown = on_one_line(str(obj.get("kind") or "something without a kind"))
        raise ManifestError(f"{shown} has no apiVersion, kind or metadata.name.")
    return ObjectReference(*map(str, parts))
