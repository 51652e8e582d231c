"""Server-side apply: the API server merges, knows who set which field, and reports conflicts."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.clients.kubernetes.failures import KindUnknownError, ObjectMissingError, Request
from stackyard.clients.kubernetes.references import ObjectReference, refer_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.clients.kubernetes.kinds import Discovery
    from stackyard.clients.kubernetes.references import KubernetesObject
    from stackyard.clients.kubernetes.transport import Transport

__all__ = [
    "FIELD_MANAGER",
    "Applied",
    "ApplyOptions",
    "Change",
    "apply_object",
    "differs",
    "is_applied_by",
    "place_object",
]

FIELD_MANAGER = "stackyard"

# What the server writes itself, and what therefore says nothing about what was applied.
_OF_THE_SERVER = frozenset(("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"))


class Change(enum.StrEnum):
    """What applying an object did."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyOptions:
    """How to apply.

    Attributes:
        manager: The name under which the server notes who set a field.
        force: Take over the fields that another manager has set to another value.
        kind_patience_s: How long to wait for a kind whose definition was just applied.
    """

    manager: str = FIELD_MANAGER
    force: bool = False
    kind_patience_s: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """An object that was applied.

    Attributes:
        reference: Which one.
        change: What that did.
        object: The object as the server has it now.
    """

    reference: ObjectReference
    change: Change
    object: Mapping[str, Any]

    @property
    def uid(self) -> str:
        """The id that no other object ever has."""
        return str(self.object.get("metadata", {}).get("uid", ""))


async def apply_object(
    transport: Transport, discovery: Discovery, obj: KubernetesObject, options: ApplyOptions
) -> Applied:
    """Apply an object; see `KubernetesClient.apply`."""
    patch = await _Patch.prepare(transport, discovery, obj, options)
    before = await patch.read()
    after = await patch.send()
    change = Change.CREATED if before is None else Change.CONFIGURED
    if before is not None and _version(before) == _version(after):
        change = Change.UNCHANGED
    return Applied(reference=patch.reference, change=change, object=after)


async def differs(
    transport: Transport, discovery: Discovery, obj: KubernetesObject, options: ApplyOptions
) -> str:
    """Return what applying an object would change; see `KubernetesClient.differs`."""
    try:
        patch = await _Patch.prepare(transport, discovery, obj, options)
    except KindUnknownError as err:
        return err.detail
    before = await patch.read()
    if before is None:
        return f"{patch.reference} does not exist"
    try:
        after = await patch.send(is_dry_run=True)
    except ObjectMissingError as err:
        return err.detail
    if _sets_fields(obj) and not is_applied_by(before, options.manager):
        return f"{patch.reference} was not applied by {options.manager}"
    changed = next(_compare(_plain(before), _plain(after), ""), None)
    return "" if changed is None else f"{patch.reference} differs in {changed}"


def place_object(obj: KubernetesObject, namespace: str, *, is_namespaced: bool) -> KubernetesObject:
    """Return an object in the namespace that it names, else in a given one; one of the cluster in none."""
    metadata = obj["metadata"]
    if not is_namespaced:
        kept = {key: value for key, value in metadata.items() if key != "namespace"}
        return obj if kept.keys() == metadata.keys() else {**obj, "metadata": kept}
    return obj if metadata.get("namespace") else {**obj, "metadata": {**metadata, "namespace": namespace}}


def is_applied_by(obj: KubernetesObject, manager: str) -> bool:
    """Return whether a manager has applied an object, by what the server notes of it."""
    entries = obj.get("metadata", {}).get("managedFields") or ()
    return any(entry.get("manager") == manager and entry.get("operation") == "Apply" for entry in entries)


def _sets_fields(obj: KubernetesObject) -> bool:
    """Return whether an object has more than its name: only then the server notes who applied it."""
    return bool({*obj} - {"apiVersion", "kind", "metadata"} or {*obj["metadata"]} - {"name", "namespace"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Patch:
    """An object on its way to the server."""

    transport: Transport
    reference: ObjectReference
    path: str
    body: KubernetesObject
    options: ApplyOptions

    @classmethod
    async def prepare(
        cls, transport: Transport, discovery: Discovery, obj: KubernetesObject, options: ApplyOptions
    ) -> _Patch:
        reference = refer_to(obj)
        patience_s = options.kind_patience_s
        kind = await discovery.find_kind(reference.api_version, reference.kind, patience_s=patience_s)
        obj = place_object(obj, "default", is_namespaced=kind.is_namespaced)
        reference = refer_to(obj)
        return cls(
            transport=transport,
            reference=reference,
            path=kind.path(reference.namespace, reference.name),
            body=obj,
            options=options,
        )

    async def read(self) -> dict[str, Any] | None:
        try:
            return (await self.transport.send(Request("GET", self.path))).document
        except ObjectMissingError:
            return None

    async def send(self, *, is_dry_run: bool = False) -> dict[str, Any]:
        query = {"fieldManager": self.options.manager, "fieldValidation": "Strict"}
        if self.options.force:
            query["force"] = "true"
        if is_dry_run:
            query["dryRun"] = "All"
        answer = await self.transport.send(
            Request("PATCH", self.path), query=query, body=self.body, secrets=tuple(_secrets(self.body))
        )
        return answer.document


def _secrets(obj: KubernetesObject) -> Iterator[str]:
    """Yield the values of a Secret, as they are and as they are sent."""
    if obj.get("kind") == "Secret":
        for part in ("data", "stringData"):
            values = obj.get(part)
            yield from map(str, values.values() if isinstance(values, Mapping) else ())


def _version(obj: Mapping[str, Any]) -> str:
    return str(obj.get("metadata", {}).get("resourceVersion", ""))


def _plain(obj: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in obj.get("metadata", {}).items() if key not in _OF_THE_SERVER}
    return {**obj, "metadata": metadata}


def _compare(before: Any, after: Any, path: str) -> Iterator[str]:
    """Yield the fields that differ; their values may be secret."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            yield from _compare(before.get(key), after.get(key), f"{path}.{key}")
    elif before != after:
        yield path or "."
