"""What requests do to objects: create, replace, patch, apply and delete."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pvelab.kubernetes import problems
from pvelab.kubernetes.fields import Shape, merge
from pvelab.kubernetes.kinds import BUILT_IN, CRD_GROUP, ServedKind, read_definition
from pvelab.kubernetes.record import Record, Writer, apply_config, replace_object, timestamp
from pvelab.kubernetes.store import Key, Store
from pvelab.kubernetes.validation import admit

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Cluster", "Target"]

_FIRST_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a request is about.

    Attributes:
        kind: The kind of objects.
        namespace: The namespace, empty for the whole cluster.
        name: The object, empty for all.
        subresource: A part of the object: `status` or `finalize`.
    """

    kind: ServedKind
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> Key:
        """Where the object is."""
        return Key(self.kind.group, self.kind.plural, self.namespace, self.name)


@dataclass(slots=True)
class Cluster:
    """The objects of a cluster and the kinds that it serves."""

    store: Store = field(default_factory=Store)

    def __post_init__(self) -> None:
        namespaces = next(kind for kind in BUILT_IN if kind.kind == "Namespace")
        for name in _FIRST_NAMESPACES:
            if self.store.find(Key("", "namespaces", "", name)) is not None:
                continue
            obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            self.create(Target(kind=namespaces), obj, Writer(manager="kube-apiserver"))

    def list_kinds(self) -> list[ServedKind]:
        """Return every kind that is served."""
        found = list(BUILT_IN)
        for _, record in self.store.list_records(CRD_GROUP, "customresourcedefinitions"):
            found += read_definition(record.object)
        return found

    def read(self, target: Target) -> Record:
        """Return an object.

        Raises:
            KubeStatusError: There is none.
        """
        found = self.store.find(target.key)
        if found is None:
            raise problems.missing(target.kind.resource, target.name)
        return found

    def create(
        self, target: Target, obj: Mapping[str, Any], writer: Writer, *, is_dry: bool = False
    ) -> Record:
        """Create an object."""
        made = self._name(target, obj)
        target = replace(target, name=made["metadata"]["name"])
        if self.store.find(target.key) is not None:
            raise problems.already_exists(target.kind.resource, target.name)
        self._check_namespace(target)
        return self._write(target, replace_object(None, made, target.kind, writer), is_dry=is_dry)

    def update(
        self, target: Target, obj: Mapping[str, Any], writer: Writer, *, is_dry: bool = False
    ) -> Record:
        """Replace an object, or its status."""
        live = self.read(target)
        made = self._name(target, obj)
        asked = made["metadata"].get("resourceVersion")
        if asked and asked != live.object["metadata"]["resourceVersion"]:
            why = (
                "the object has been modified; please apply your changes to the latest version and try again"
            )
            raise problems.conflict(target.kind.resource, target.name, why)
        if target.subresource == "finalize":
            live = replace(live, object={**live.object, "spec": made.get("spec") or {}})
            return self._write(target, live, is_dry=is_dry)
        return self._write(target, replace_object(live, made, target.kind, writer), is_dry=is_dry)

    def patch(
        self, target: Target, patch: Mapping[str, Any], writer: Writer, *, is_strategic: bool
    ) -> Record:
        """Change some fields of an object."""
        live = self.read(target)
        # Without a shape, lists are replaced: a merge patch knows no keys.
        shape = Shape(target.kind if is_strategic else replace(target.kind, is_custom=True, schema={}))
        merged = _drop_nulls(merge(live.object, patch, shape))
        merged["metadata"].pop("resourceVersion", None)
        return self.update(target, merged, writer)

    def apply(
        self, target: Target, config: Mapping[str, Any], writer: Writer, *, is_dry: bool = False
    ) -> tuple[Record, bool]:
        """Apply an object on the server's side; return it and whether it is new."""
        live = self.store.find(target.key)
        if live is None and target.subresource:
            raise problems.missing(target.kind.resource, target.name)
        if live is None:
            self._check_namespace(target)
        made = self._name(target, config)
        if not target.subresource:
            made = _as_sent(admit(made, target.kind, is_applied=True), made, target.kind)
        record = apply_config(live, made, target.kind, writer)
        return self._write(target, record, is_dry=is_dry), live is None

    def delete(self, target: Target, options: Mapping[str, Any]) -> Record:
        """Delete an object; one with finalizers stays until they are gone."""
        live = self.read(target)
        wanted = (options.get("preconditions") or {}).get("uid")
        if wanted and wanted != live.object["metadata"]["uid"]:
            why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: "
            raise problems.conflict(target.kind.resource, target.name, why + live.object["metadata"]["uid"])
        if options.get("dryRun"):
            return live
        obj = copy.deepcopy(dict(live.object))
        obj["metadata"].setdefault("deletionTimestamp", timestamp())
        if target.kind.kind == "Namespace":
            obj["status"] = {"phase": "Terminating"}
        return self._write(target, replace(live, object=obj))

    def _name(self, target: Target, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Check that an object is the one of the path, and give it its namespace."""
        made = copy.deepcopy(dict(obj))
        metadata = made["metadata"] = dict(made.get("metadata") or {})
        if made.get("kind", target.kind.kind) != target.kind.kind:
            raise problems.bad_request(f"{made.get('kind')} cannot be handled as a {target.kind.kind}")
        if target.name and metadata.setdefault("name", target.name) != target.name:
            raise problems.bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL "
                f"({target.name})"
            )
        if (
            target.kind.is_namespaced
            and metadata.setdefault("namespace", target.namespace) != target.namespace
        ):
            raise problems.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        return made

    def _check_namespace(self, target: Target) -> None:
        if not target.kind.is_namespaced:
            return
        found = self.store.find(Key("", "namespaces", "", target.namespace))
        if found is None:
            raise problems.missing("namespaces", target.namespace)
        if "deletionTimestamp" in found.object["metadata"]:
            message = (
                f'{target.kind.resource} "{target.name}" is forbidden: unable to create new content in '
                f"namespace {target.namespace} because it is being terminated"
            )
            raise problems.KubeStatusError(403, "Forbidden", message)

    def _write(self, target: Target, record: Record, *, is_dry: bool = False) -> Record:
        live = self.store.find(target.key)
        if record is live:
            return record
        if not target.subresource:
            record = replace(record, object=admit(dict(record.object), target.kind))
            if live is not None and record.object == live.object and record.owners == live.owners:
                return live
        if is_dry:
            return record
        metadata = record.object["metadata"]
        if "deletionTimestamp" in metadata and not _finalizers(record.object):
            return self._remove(target, record)
        if target.kind.kind == "CustomResourceDefinition":
            record = replace(record, object={**record.object, "status": _establish(record.object)})
        return self.store.put(target.key, record)

    def _remove(self, target: Target, record: Record) -> Record:
        if target.kind.kind == "CustomResourceDefinition":
            for kind in read_definition(record.object):
                for key, _ in self.store.list_records(kind.group, kind.plural):
                    self.store.remove(key)
        return self.store.remove(target.key) or record


def _finalizers(obj: Mapping[str, Any]) -> list[str]:
    spec = obj.get("spec") or {}
    own = spec.get("finalizers") if obj.get("kind") == "Namespace" else None
    return [*(obj["metadata"].get("finalizers") or ()), *(own or ())]


def _as_sent(admitted: dict[str, Any], sent: Mapping[str, Any], kind: ServedKind) -> dict[str, Any]:
    """Return what a manager owns: the fields that it sent, in the form that they are stored in."""
    if kind.kind == "Secret" and "stringData" in sent:
        return {key: value for key, value in admitted.items() if key in sent or key == "data"}
    return dict(sent)


def _drop_nulls(value: Any) -> Any:
    """Remove the fields that a patch has set to null."""
    if isinstance(value, dict):
        return {key: _drop_nulls(inner) for key, inner in value.items() if inner is not None}
    return value


def _establish(definition: Mapping[str, Any]) -> dict[str, Any]:
    spec = definition.get("spec") or {}
    now = timestamp()
    return {
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "lastTransitionTime": now,
                "reason": reason,
                "message": message,
            }
            for kind, reason, message in (
                ("NamesAccepted", "NoConflicts", "no conflicts found"),
                ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            )
        ],
        "acceptedNames": spec.get("names") or {},
        "storedVersions": [row["name"] for row in spec.get("versions") or () if row.get("storage")],
    }
