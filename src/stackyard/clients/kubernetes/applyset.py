"""A named set of objects that is applied as a whole, and cleaned of what an earlier version had.

The set keeps an inventory: a ConfigMap with the reference and uid of every object that it applied. The
inventory and the objects have the labels of an ApplySet of Kubernetes. The inventory is written before the
objects, so that a run that is killed leaves nothing that the next run does not know of. An object is removed
only if the inventory has it, it is still the same object, and the set's manager applied it. Namespaces,
definitions and volumes are never removed: everything in them would be lost. An object that must not be read
is unknown, not gone: it stays in the inventory and is reported.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.clients.kubernetes.apply import Applied, ApplyOptions, is_applied_by, place_object
from stackyard.clients.kubernetes.failures import KindUnknownError, KubernetesError, KubernetesForbiddenError
from stackyard.clients.kubernetes.references import KubernetesObject, ObjectReference, refer_to
from stackyard.clients.kubernetes.waits import is_established

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stackyard.clients.kubernetes.client import KubernetesClient

__all__ = ["ApplySet", "ApplySetError", "ApplySetResult", "apply_set", "look_at_set"]

# Each is applied when all before it are: a namespace, then what others need to exist, then the rest.
_FIRST = (
    ("Namespace",),
    ("CustomResourceDefinition",),
    ("ServiceAccount", "ClusterRole", "Role", "ConfigMap"),
)
# With one of these, everything that is in it goes.
_HOLDS_OTHERS = ("Namespace", "CustomResourceDefinition", "PersistentVolumeClaim", "PersistentVolume")
_ESTABLISHED_S = 60.0
_AT_ONCE = 8
# The labels and the annotation that Kubernetes defines for sets of objects.
_ID = "applyset.kubernetes.io/id"
_PART_OF = "applyset.kubernetes.io/part-of"
_TOOLING = "applyset.kubernetes.io/tooling"


class ApplySetError(KubernetesError):
    """A set of objects cannot be applied as a whole."""

    code = "E-KUBERNETES-SET"
    summary = "A set of Kubernetes objects cannot be applied"
    default_remedy = "Correct every object listed, then run the command again: what was applied stays."


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplySet:
    """A set of objects.

    Attributes:
        name: Its name, which is that of its inventory.
        namespace: Where its inventory is; the namespace must exist or be one of the objects.
        objects: The objects.
        options: How to apply them.
        default_namespace: Where objects go that name no namespace, and whose kind is in namespaces.
    """

    name: str
    namespace: str
    objects: tuple[KubernetesObject, ...]
    options: ApplyOptions = field(default_factory=ApplyOptions)
    default_namespace: str = "default"

    @property
    def inventory(self) -> ObjectReference:
        """The ConfigMap with what the set has applied."""
        name = f"{self.options.manager}-inventory-{self.name}"
        return ObjectReference("v1", "ConfigMap", name, self.namespace)

    @property
    def id(self) -> str:
        """What the labels of its objects name it by."""
        text = f"{self.inventory.name}.{self.namespace}.ConfigMap."
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        return f"applyset-{digest}-v1"

    def mark(self, obj: KubernetesObject) -> dict[str, Any]:
        """Return an object with the label of the set: so the server notes who applied even an empty one."""
        metadata = obj["metadata"]
        labels = {**(metadata.get("labels") or {}), _PART_OF: self.id}
        return {**obj, "metadata": {**metadata, "labels": labels}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplySetResult:
    """What applying a set did.

    Attributes:
        applied: Its objects, in the order of the set.
        removed: What an earlier version had applied and this one does not have.
        kept: What was not removed although this version does not have it, each with the reason.
    """

    applied: tuple[Applied, ...]
    removed: tuple[ObjectReference, ...] = ()
    kept: Mapping[ObjectReference, str] = field(default_factory=dict)


async def apply_set(client: KubernetesClient, wanted: ApplySet) -> ApplySetResult:
    """Apply all objects of a set, then remove what an earlier version of it applied.

    Nothing is removed unless every object of this version was applied.

    Raises:
        ApplySetError: The set is empty, has an object twice, or several objects were refused.
        KubernetesError: An object was refused.
    """
    wanted = await _place(client, wanted)
    references = _check(wanted)
    stages = _order(wanted.objects)
    # The namespaces come first: the inventory is in one of them.
    applied = await _apply_all(client, stages[0], wanted)
    before = await _read_inventory(client, wanted)
    noted = {**{reference: "" for reference in references}, **before}
    await _write_inventory(client, wanted, noted)
    for stage in stages[1:]:
        applied |= await _apply_all(client, stage, wanted)
    now = {row.reference: row.uid for row in applied.values()}
    identities = {reference.identity for reference in now}
    former = {ref: uid for ref, uid in before.items() if ref.identity not in identities}
    removed, kept = await _prune(client, wanted, former)
    unknown = {reference: former[reference] for reference, why in kept.items() if why.startswith("unknown")}
    await _write_inventory(client, wanted, {**now, **unknown})
    ordered = tuple(applied[id(obj)] for obj in wanted.objects)
    return ApplySetResult(applied=ordered, removed=removed, kept=kept)


async def look_at_set(client: KubernetesClient, wanted: ApplySet) -> str:
    """Return why a set is not applied as it is now, in words; empty if it is.

    Raises:
        KubernetesError: The cluster does not say.
    """
    wanted = await _place(client, wanted)
    references = _check(wanted)
    if await client.find(wanted.inventory) is None:
        return f"{wanted.inventory} does not exist"
    identities = {reference.identity for reference in references}
    for reference in await _read_inventory(client, wanted):
        if reference.identity not in identities:
            return f"{reference} is left over from an earlier version"
    options = ApplyOptions(manager=wanted.options.manager, force=wanted.options.force, kind_patience_s=0.0)
    gate = asyncio.Semaphore(_AT_ONCE)

    async def compare(obj: KubernetesObject) -> str:
        async with gate:
            return await client.differs(wanted.mark(obj), options)

    found = await asyncio.gather(*(compare(obj) for obj in wanted.objects))
    return next(filter(None, found), "")


async def _place(client: KubernetesClient, wanted: ApplySet) -> ApplySet:
    """Give every object the namespace in which it will be: manifests do not say which kinds are in one.

    Definitions of the set itself count, then the API server. A kind that neither knows yet is taken to be in
    namespaces; if that is wrong, its objects lose the namespace once the kind is served.
    """
    scopes = dict(_list_scopes(wanted.objects))

    async def place(obj: KubernetesObject) -> KubernetesObject:
        reference = refer_to(obj)
        is_namespaced = scopes.get((reference.group, reference.kind))
        if is_namespaced is None:
            try:
                kind = await client.find_kind(reference.api_version, reference.kind)
            except KindUnknownError:
                is_namespaced = True
            else:
                is_namespaced = kind.is_namespaced
        return place_object(obj, wanted.default_namespace, is_namespaced=is_namespaced)

    return replace(wanted, objects=tuple([await place(obj) for obj in wanted.objects]))


def _list_scopes(objects: Iterable[KubernetesObject]) -> Iterator[tuple[tuple[str, str], bool]]:
    """Yield the kinds that a set defines itself, and whether their objects are in namespaces."""
    for obj in objects:
        spec = obj.get("spec")
        if obj.get("kind") == "CustomResourceDefinition" and isinstance(spec, Mapping):
            names = spec.get("names")
            kind = names.get("kind") if isinstance(names, Mapping) else None
            yield (str(spec.get("group")), str(kind)), spec.get("scope") != "Cluster"


def _check(wanted: ApplySet) -> list[ObjectReference]:
    if not wanted.objects:
        raise ApplySetError(
            f"The set {wanted.name} has no object: applying it would remove everything that it has applied.",
            remedy="Check where its objects come from; nothing was changed.",
        )
    references = [refer_to(obj) for obj in wanted.objects]
    seen: set[tuple[str, str, str, str]] = set()
    twice = []
    for reference in references:
        if reference.identity in seen:
            twice.append(str(reference))
        seen.add(reference.identity)
    if twice:
        raise ApplySetError(f"The set {wanted.name} has these objects twice: {', '.join(sorted(twice))}.")
    return references


def _order(objects: Iterable[KubernetesObject]) -> list[list[KubernetesObject]]:
    rows: list[list[KubernetesObject]] = [[] for _ in range(len(_FIRST) + 1)]
    for obj in objects:
        place = next((number for number, kinds in enumerate(_FIRST) if obj.get("kind") in kinds), len(_FIRST))
        rows[place].append(obj)
    return rows


async def _apply_all(
    client: KubernetesClient, objects: Sequence[KubernetesObject], wanted: ApplySet
) -> dict[int, Applied]:
    """Apply objects, some at once; report all that are refused, not only the first."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def apply(obj: KubernetesObject) -> Applied | KubernetesError:
        async with gate:
            try:
                done = await client.apply(wanted.mark(obj), wanted.options)
                if done.reference.kind == "CustomResourceDefinition":
                    await client.wait_until(done.reference, is_established(), timeout_s=_ESTABLISHED_S)
            except KubernetesError as err:
                return err
            return done

    found = await asyncio.gather(*(apply(obj) for obj in objects))
    failures = [row for row in found if isinstance(row, KubernetesError)]
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise ApplySetError(
            f"{len(failures)} objects of the set {wanted.name} were refused:\n"
            + "\n".join(f"- {failure.detail}" for failure in failures)
        )
    return {id(obj): row for obj, row in zip(objects, found, strict=True) if isinstance(row, Applied)}


async def _prune(
    client: KubernetesClient, wanted: ApplySet, former: Mapping[ObjectReference, str]
) -> tuple[tuple[ObjectReference, ...], dict[ObjectReference, str]]:
    removed: list[ObjectReference] = []
    kept: dict[ObjectReference, str] = {}
    # What was applied last goes first, so that a definition outlives its objects.
    for reference, uid in reversed(list(former.items())):
        try:
            found = await client.find(reference)
        except KubernetesForbiddenError as err:
            kept[reference] = f"unknown: {err.detail}"
            continue
        if found is None:
            continue
        found_uid = str(found["metadata"].get("uid", ""))
        if uid and uid != found_uid:
            kept[reference] = "another object of that name has taken its place"
        elif not is_applied_by(found, wanted.options.manager):
            kept[reference] = f"{wanted.options.manager} has not applied it"
        elif reference.kind in _HOLDS_OTHERS:
            kept[reference] = "what is in it would be lost; delete it yourself"
        elif await client.delete(reference, uid=found_uid):
            removed.append(reference)
    return tuple(removed), kept


async def _read_inventory(client: KubernetesClient, wanted: ApplySet) -> dict[ObjectReference, str]:
    """Return what the set has applied, with the uid of each that is known."""
    found = await client.find(wanted.inventory)
    rows: dict[ObjectReference, str] = {}
    for line in str(((found or {}).get("data") or {}).get("objects", "")).splitlines():
        try:
            row = parse_json(line)
            rows[ObjectReference(*(str(row[key]) for key in _KEYS))] = str(row.get("uid", ""))
        except (JsonError, KeyError, TypeError, AttributeError):
            raise ApplySetError(
                f"{wanted.inventory} was changed by hand: a line of it is not an object.",
                remedy=f"Correct it, or delete {wanted.inventory}: what it lists is then no longer removed.",
            ) from None
    return rows


_KEYS = ("apiVersion", "kind", "name", "namespace")


async def _write_inventory(
    client: KubernetesClient, wanted: ApplySet, rows: Mapping[ObjectReference, str]
) -> None:
    lines = [
        orjson.dumps(
            {
                "apiVersion": reference.api_version,
                "kind": reference.kind,
                "name": reference.name,
                "namespace": reference.namespace,
                "uid": uid,
            }
        ).decode()
        for reference, uid in rows.items()
    ]
    obj: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": wanted.inventory.name,
            "namespace": wanted.namespace,
            "labels": {_ID: wanted.id},
            "annotations": {_TOOLING: f"{wanted.options.manager}/v1"},
        },
        "data": {"objects": "\n".join(lines)},
    }
    await client.apply(obj, wanted.options)
