"""Who a client is, and what the roles of the cluster allow it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.serving import peer_certificate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aiohttp import web

    from pvelab.kubernetes.store import Store

__all__ = ["User", "find_user", "is_allowed"]

_RBAC = "rbac.authorization.k8s.io"
_MASTERS = "system:masters"


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A client: its name and its groups."""

    name: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What a client wants to do."""

    verb: str
    group: str
    resource: str
    namespace: str = ""


def find_user(request: web.BaseRequest, tokens: Mapping[str, User]) -> User | None:
    """Return who has sent a request, by its certificate or its token; None for nobody."""
    shown = peer_certificate(request)
    if shown is not None:
        parts = [part.partition("=") for part in shown.subject.split(",")]
        groups = tuple(value for key, _, value in parts if key == "O")
        return User(name=shown.common_name, groups=groups)
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return tokens.get(token) if scheme == "Bearer" else None


def is_allowed(store: Store, user: User, demand: Demand) -> bool:
    """Return whether a role of the cluster allows a user what it wants."""
    if _MASTERS in user.groups:
        return True
    return any(_covers(rule, demand) for rule in _rules(store, user, demand.namespace))


def _rules(store: Store, user: User, namespace: str) -> Iterator[dict[str, Any]]:
    bindings = [record.object for _, record in store.list_records(_RBAC, "clusterrolebindings")]
    if namespace:
        bindings += [record.object for _, record in store.list_records(_RBAC, "rolebindings", namespace)]
    for binding in bindings:
        if not any(_is_subject(subject, user) for subject in binding.get("subjects") or ()):
            continue
        role = binding.get("roleRef") or {}
        plural = "clusterroles" if role.get("kind") == "ClusterRole" else "roles"
        for key, record in store.list_records(_RBAC, plural):
            if key.name == role.get("name") and (plural == "clusterroles" or key.namespace == namespace):
                yield from record.object.get("rules") or ()


def _is_subject(subject: dict[str, Any], user: User) -> bool:
    names = (user.name,) if subject.get("kind") == "User" else (*user.groups, "system:authenticated")
    return subject.get("kind") in ("User", "Group") and subject.get("name") in names


def _covers(rule: dict[str, Any], demand: Demand) -> bool:
    wanted = (("verbs", demand.verb), ("apiGroups", demand.group), ("resources", demand.resource))
    return all({"*", value} & set(rule.get(part) or ()) for part, value in wanted)
