"""Refusals of a Kubernetes API: the `Status` objects that clients read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "KubeStatusError",
    "already_exists",
    "bad_request",
    "conflict",
    "expired",
    "field_conflict",
    "forbidden",
    "invalid",
    "missing",
    "unauthorized",
    "untyped",
]


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason of a refusal: its kind, its words, and the field."""

    reason: str
    message: str
    field: str = ""


class KubeStatusError(Exception):
    """A request that is answered with a `Status`.

    Args:
        code: The HTTP status.
        reason: The word of Kubernetes for it.
        message: The words of Kubernetes for it.
        details: What it is about.
    """

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}

    def document(self) -> dict[str, Any]:
        """Return the `Status`."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }


def missing(resource: str, name: str) -> KubeStatusError:
    """Say that there is no such object."""
    return KubeStatusError(
        404, "NotFound", f'{resource} "{name}" not found', {"name": name, "kind": resource}
    )


def already_exists(resource: str, name: str) -> KubeStatusError:
    """Say that an object of that name is there."""
    return KubeStatusError(409, "AlreadyExists", f'{resource} "{name}" already exists', {"name": name})


def conflict(resource: str, name: str, why: str) -> KubeStatusError:
    """Say that an object is not what the request expects."""
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return KubeStatusError(409, "Conflict", message, {"name": name, "kind": resource})


def field_conflict(rows: list[tuple[str, str]], version: str) -> KubeStatusError:
    """Say which managers own which fields with another value."""
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{manager}" using {version}',
            "field": path,
        }
        for manager, path in rows
    ]
    first = ", ".join(f"{row['message']}: {row['field']}" for row in causes)
    plural = "conflict" if len(rows) == 1 else "conflicts"
    return KubeStatusError(
        409, "Conflict", f"Apply failed with {len(rows)} {plural}: {first}", {"causes": causes}
    )


def invalid(kind: str, name: str, causes: list[Cause]) -> KubeStatusError:
    """Say everything that is wrong with an object."""
    rows = [{"reason": row.reason, "message": row.message, "field": row.field} for row in causes]
    said = ", ".join(f"{row.field}: {row.message}" for row in causes)
    said = said if len(causes) == 1 else f"[{said}]"
    message = f'{kind} "{name}" is invalid: {said}'
    return KubeStatusError(422, "Invalid", message, {"name": name, "kind": kind, "causes": rows})


def bad_request(message: str) -> KubeStatusError:
    """Say that a request cannot be understood."""
    return KubeStatusError(400, "BadRequest", message)


def untyped(obj: Mapping[str, Any], why: str) -> KubeStatusError:
    """Say that an object that is applied does not fit the types of its schema."""
    metadata = obj.get("metadata") or {}
    place = "/".join(filter(None, (metadata.get("namespace"), metadata.get("name"))))
    where = f"({place}; {obj.get('apiVersion')}, Kind={obj.get('kind')})"
    return KubeStatusError(500, "", f"failed to create typed patch object {where}: {why}")


def forbidden(user: str, verb: str, resource: str, group: str, namespace: str) -> KubeStatusError:
    """Say that a user may not do that."""
    place = f' in the namespace "{namespace}"' if namespace else " at the cluster scope"
    who = f'User "{user}" cannot {verb} resource "{resource}"'
    message = f'{resource} is forbidden: {who} in API group "{group}"{place}'
    return KubeStatusError(403, "Forbidden", message, {"kind": resource})


def unauthorized() -> KubeStatusError:
    """Say that the client is nobody that the cluster knows."""
    return KubeStatusError(401, "Unauthorized", "Unauthorized")


def expired(asked: int, oldest: int) -> KubeStatusError:
    """Say that the changes since a version are no longer kept."""
    return KubeStatusError(410, "Expired", f"too old resource version: {asked} ({oldest})")
