"""What Flux's controllers do: fetch the source with the key that the cluster has, and apply what is in it.

A condition becomes True only after the revision was really fetched and its objects were really applied. A
wrong path, key, revision or object leaves it False, with the reason.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pvelab.kubernetes.gitsource import FetchedSource, GitReference, SourceFailure, fetch_source
from pvelab.kubernetes.kustomize import build_objects
from pvelab.kubernetes.problems import KubeStatusError
from pvelab.kubernetes.record import timestamp

if TYPE_CHECKING:
    from pathlib import Path

    from pvelab.kubernetes.client import ControllerClient

__all__ = ["FluxControllers"]

_SOURCE = "/apis/source.toolkit.fluxcd.io/v1"
_KUSTOMIZE = "/apis/kustomize.toolkit.fluxcd.io/v1"
_REQUESTED = "reconcile.fluxcd.io/requestedAt"
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
# A source that could not be fetched is tried again after this time.
_RETRY_S = 5.0


@dataclass(slots=True)
class _Seen:
    """What a source was fetched for, when it is due again, and what was fetched."""

    signature: tuple[str, ...]
    due: float
    fetched: FetchedSource | None


@dataclass(slots=True)
class FluxControllers:
    """The controllers of sources and Kustomizations; each works only while its Deployment is rolled out.

    Attributes:
        sources: The client of the source controller.
        kustomize: The client of the kustomize controller.
        folder: Where fetched repositories are.
    """

    sources: ControllerClient
    kustomize: ControllerClient
    folder: Path
    _seen: dict[str, _Seen] = field(default_factory=dict)

    def next_due_s(self) -> float | None:
        """Return after how long a source must be fetched again; None if there is none."""
        dues = [seen.due for seen in self._seen.values()]
        return max(0.05, min(dues) - time.monotonic()) if dues else None

    async def fetch_sources(self) -> None:
        """Fetch every GitRepository that is new, changed or due."""
        for obj in await self.sources.list_items(f"{_SOURCE}/gitrepositories"):
            if await self._is_running("source-controller", obj["metadata"]["namespace"]):
                await self._fetch(obj)

    async def _fetch(self, obj: dict[str, Any]) -> None:
        spec, path = obj.get("spec") or {}, _path(obj, _SOURCE, "gitrepositories")
        secret = await self._read_secret(obj, (spec.get("secretRef") or {}).get("name"))
        signature = (*_signature(obj), str((secret or {}).get("metadata", {}).get("resourceVersion", "")))
        seen = self._seen.get(path)
        if seen is not None and seen.signature == signature and seen.due > time.monotonic():
            return
        kept, fetched = seen.fetched if seen else None, None
        try:
            fetched = await self._fetch_once(obj, secret)
        except SourceFailure as failure:
            await self._report(self.sources, obj, path, (failure.reason, failure.message), {})
        else:
            message = f"stored artifact for revision '{fetched.revision}'"
            artifact = {
                "artifact": {
                    "revision": fetched.revision,
                    "digest": f"sha256:{fetched.commit:0>64}",
                    "path": f"gitrepository/{obj['metadata']['name']}",
                    "url": f"http://source-controller/{obj['metadata']['name']}",
                    "lastUpdateTime": timestamp(),
                }
            }
            await self._report(self.sources, obj, path, ("", message), artifact)
        due = time.monotonic() + (_RETRY_S if fetched is None else _seconds(spec.get("interval", "1m")))
        self._seen[path] = _Seen(signature, due, fetched or kept)

    async def _fetch_once(self, obj: dict[str, Any], secret: dict[str, Any] | None) -> FetchedSource:
        spec, metadata = obj["spec"], obj["metadata"]
        name = (spec.get("secretRef") or {}).get("name")
        if name and secret is None:
            message = f"failed to get secret '{metadata['namespace']}/{name}': secrets \"{name}\" not found"
            raise SourceFailure("AuthenticationFailed", message)
        wanted = spec.get("ref") or {}
        reference = GitReference(
            url=str(spec.get("url", "")),
            branch=str(wanted.get("branch") or "master"),
            tag=str(wanted.get("tag") or ""),
            commit=str(wanted.get("commit") or ""),
        )
        data = None if secret is None else secret.get("data") or {}
        return await fetch_source(reference, data, self.folder / metadata["uid"])

    async def apply_kustomizations(self) -> None:
        """Apply every Kustomization whose source and dependencies are ready."""
        for obj in await self.kustomize.list_items(f"{_KUSTOMIZE}/kustomizations"):
            if await self._is_running("kustomize-controller", obj["metadata"]["namespace"]):
                await self._apply(obj)

    async def _apply(self, obj: dict[str, Any]) -> None:
        path = _path(obj, _KUSTOMIZE, "kustomizations")
        revision, entries = "", None
        try:
            fetched = await self._find_source(obj)
            revision = fetched.revision
            await self._check_dependencies(obj)
            secret = await self._read_secret(obj, _decryption_secret(obj))
            objects = await build_objects(fetched, obj.get("spec") or {}, secret)
            entries = await self._apply_objects(obj, objects)
            await self._check_health(entries)
        except SourceFailure as failure:
            # What was applied is noted, ready or not: the next revision may have to remove it.
            status: dict[str, Any] = {"lastAttemptedRevision": revision} if revision else {}
            status |= {"inventory": {"entries": entries}} if entries is not None else {}
            await self._report(self.kustomize, obj, path, (failure.reason, failure.message), status)
            return
        status = {
            "lastAppliedRevision": revision,
            "lastAttemptedRevision": revision,
            "inventory": {"entries": entries},
        }
        await self._report(self.kustomize, obj, path, ("", f"Applied revision: {revision}"), status)

    async def _find_source(self, obj: dict[str, Any]) -> FetchedSource:
        wanted = obj["spec"].get("sourceRef") or {}
        namespace = wanted.get("namespace") or obj["metadata"]["namespace"]
        path = f"{_SOURCE}/namespaces/{namespace}/gitrepositories/{wanted.get('name')}"
        seen = self._seen.get(path)
        if seen is None or seen.fetched is None:
            raise SourceFailure("ArtifactFailed", "Source artifact not found, retrying in 30s")
        return seen.fetched

    async def _check_dependencies(self, obj: dict[str, Any]) -> None:
        for wanted in obj["spec"].get("dependsOn") or ():
            namespace = wanted.get("namespace") or obj["metadata"]["namespace"]
            found = await self.kustomize.find(
                f"{_KUSTOMIZE}/namespaces/{namespace}/kustomizations/{wanted['name']}"
            )
            if found is None or not _is_ready(found):
                message = f"dependency '{namespace}/{wanted['name']}' is not ready"
                raise SourceFailure("DependencyNotReady", message)

    async def _apply_objects(
        self, obj: dict[str, Any], objects: list[dict[str, Any]]
    ) -> list[dict[str, str]]:
        """Apply objects, and remove those that an earlier revision had."""
        entries: list[dict[str, str]] = []
        for part in objects:
            try:
                path = await self._find_object(part)
                await self.kustomize.apply(path, part)
            except KubeStatusError as problem:
                name = f"{part.get('kind')}/{part['metadata'].get('name')}"
                raise SourceFailure(
                    "ReconciliationFailed", f"{name} apply failed: {problem.message}"
                ) from problem
            entries.append({"id": path, "v": str(part.get("apiVersion"))})
        paths = {entry["id"] for entry in entries}
        before = ((obj.get("status") or {}).get("inventory") or {}).get("entries") or ()
        for entry in before:
            if (
                obj["spec"].get("prune")
                and entry["id"] not in paths
                and await self.kustomize.find(entry["id"])
            ):
                await self.kustomize.send("DELETE", entry["id"])
        return entries

    async def _find_object(self, obj: dict[str, Any]) -> str:
        version = str(obj.get("apiVersion"))
        prefix = f"/{'apis' if '/' in version else 'api'}/{version}"
        for row in (await self.kustomize.find(prefix) or {}).get("resources") or ():
            if row.get("kind") == obj.get("kind") and "/" not in row["name"]:
                metadata = obj["metadata"]
                place = f"/namespaces/{metadata.get('namespace', 'default')}" if row["namespaced"] else ""
                return f"{prefix}{place}/{row['name']}/{metadata['name']}"
        raise KubeStatusError(
            404, "NotFound", f'no matches for kind "{obj.get("kind")}" in version "{version}"'
        )

    async def _check_health(self, entries: list[dict[str, str]]) -> None:
        for entry in entries:
            found = await self.kustomize.find(entry["id"])
            if found is None or not _is_healthy(found):
                message = f"timeout waiting for: [{entry['id'].rpartition('/v1/')[2]} status: 'InProgress']"
                raise SourceFailure("HealthCheckFailed", message)

    async def _is_running(self, name: str, namespace: str) -> bool:
        found = await self.sources.find(f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}")
        return bool(found and (found.get("status") or {}).get("readyReplicas"))

    async def _read_secret(self, obj: dict[str, Any], name: str | None) -> dict[str, Any] | None:
        if not name:
            return None
        return await self.sources.find(f"/api/v1/namespaces/{obj['metadata']['namespace']}/secrets/{name}")

    async def _report(
        self,
        client: ControllerClient,
        obj: dict[str, Any],
        path: str,
        said: tuple[str, str],
        status: dict[str, Any],
    ) -> None:
        """Set the condition Ready, where it is not so already."""
        failure, message = said
        generation = int(obj["metadata"].get("generation", 1))
        row = {
            "type": "Ready",
            "status": "False" if failure else "True",
            "reason": failure or ("Succeeded" if path.startswith(_SOURCE) else "ReconciliationSucceeded"),
            "message": message,
            "observedGeneration": generation,
        }
        before: dict[str, Any] = next(iter((obj.get("status") or {}).get("conditions") or ()), {})
        is_same = all(before.get(key) == value for key, value in row.items())
        handled = (obj["metadata"].get("annotations") or {}).get(_REQUESTED)
        if is_same and (obj.get("status") or {}).get("lastHandledReconcileAt") == handled:
            return
        row["lastTransitionTime"] = timestamp()
        if handled is not None:
            status = {**status, "lastHandledReconcileAt": handled}
        await client.set_status(path, {**status, "observedGeneration": generation, "conditions": [row]})


def _path(obj: dict[str, Any], prefix: str, plural: str) -> str:
    metadata = obj["metadata"]
    return f"{prefix}/namespaces/{metadata['namespace']}/{plural}/{metadata['name']}"


def _signature(obj: dict[str, Any]) -> tuple[str, ...]:
    metadata = obj["metadata"]
    requested = (metadata.get("annotations") or {}).get(_REQUESTED, "")
    return str(metadata.get("uid")), str(metadata.get("generation")), str(requested)


def _decryption_secret(obj: dict[str, Any]) -> str | None:
    decryption = obj["spec"].get("decryption") or {}
    return (decryption.get("secretRef") or {}).get("name")


def _is_ready(obj: dict[str, Any]) -> bool:
    generation = obj["metadata"].get("generation")
    rows = (obj.get("status") or {}).get("conditions") or ()
    return any(
        row.get("type") == "Ready"
        and row.get("status") == "True"
        and row.get("observedGeneration") == generation
        for row in rows
    )


def _is_healthy(obj: dict[str, Any]) -> bool:
    status, kind = obj.get("status") or {}, obj.get("kind")
    if kind in ("Deployment", "StatefulSet"):
        return int(status.get("readyReplicas") or 0) >= int(obj["spec"].get("replicas", 1))
    if kind == "DaemonSet":
        return int(status.get("numberReady") or 0) >= int(status.get("desiredNumberScheduled") or 1)
    return True


def _seconds(text: str) -> float:
    return sum(float(number) * _UNITS_S[unit] for number, unit in _DURATION.findall(str(text))) or 60.0
