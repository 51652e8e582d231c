"""Which groups, versions and kinds a Kubernetes API has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pvelab.kubernetes.kinds import ServedKind

__all__ = ["describe"]

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def describe(path: str, kinds: Sequence[ServedKind]) -> dict[str, Any] | None:
    """Return what a path of discovery has; None if it is none, or of a group that is not served."""
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        groups: dict[str, list[str]] = {}
        for kind in kinds:
            if kind.group and kind.version not in groups.setdefault(kind.group, []):
                groups[kind.group].append(kind.version)
        return {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [_describe_group(group, versions) for group, versions in groups.items()],
        }
    first, *rest = path.strip("/").split("/")
    if (first, len(rest)) not in (("api", 1), ("apis", 2)):
        return None
    api_version = "/".join(rest)
    found = [kind for kind in kinds if kind.api_version == api_version]
    if not found:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": api_version,
        "resources": [row for kind in found for row in _describe_kind(kind)],
    }


def _describe_group(group: str, versions: list[str]) -> dict[str, Any]:
    rows = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": rows, "preferredVersion": rows[0]}


def _describe_kind(kind: ServedKind) -> Iterator[dict[str, Any]]:
    row: dict[str, Any] = {
        "name": kind.plural,
        "singularName": kind.kind.lower(),
        "namespaced": kind.is_namespaced,
        "kind": kind.kind,
    }
    short = {"shortNames": list(kind.short_names)} if kind.short_names else {}
    yield {**row, **short, "verbs": _VERBS}
    if kind.has_status:
        yield {**row, "name": f"{kind.plural}/status", "verbs": ["get", "patch", "update"]}
