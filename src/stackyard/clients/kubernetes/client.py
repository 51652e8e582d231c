"""The client of one cluster's API: get, list, apply, delete, watch and wait."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from stackyard.clients.kubernetes.apply import Applied, ApplyOptions, apply_object, differs
from stackyard.clients.kubernetes.failures import (
    KindUnknownError,
    KubernetesRefusedError,
    ObjectMissingError,
    Request,
    WatchExpiredError,
)
from stackyard.clients.kubernetes.kinds import Discovery, ResourceKind
from stackyard.clients.kubernetes.transport import Patience, Transport
from stackyard.clients.kubernetes.waits import Expectation, OnWaiting, ignore_waiting, wait_until
from stackyard.clients.kubernetes.watch import Watched, WatchEvent, watch_objects

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from stackyard.clients.kubernetes.kubeconfig import ClusterAccess
    from stackyard.clients.kubernetes.references import KubernetesObject, ObjectReference

__all__ = ["KubernetesClient", "Selection"]

_PAGE = 500
_DEFAULT_PATIENCE = Patience()
_DEFAULT_OPTIONS = ApplyOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which objects of a kind.

    Attributes:
        api_version: The group and version of the kind.
        kind: The kind.
        namespace: Only those of this namespace; empty for those of the whole cluster.
        labels: Only those with these labels, as Kubernetes writes a selector.
        name: Only the one with this name.
    """

    api_version: str
    kind: str
    namespace: str = ""
    labels: str = ""
    name: str = ""

    @property
    def query(self) -> dict[str, str]:
        """The parameters of a request for these objects."""
        found = {"labelSelector": self.labels, "fieldSelector": self.name and f"metadata.name={self.name}"}
        return {key: value for key, value in found.items() if value}


class KubernetesClient:
    """Sends requests to the API of one cluster; use it in an `async with` block.

    Args:
        access: How to reach the cluster.
        patience: How long to wait for answers.
    """

    def __init__(self, access: ClusterAccess, patience: Patience = _DEFAULT_PATIENCE) -> None:
        self.access = access
        self._patience = patience
        self._transport = Transport(access, patience)
        self._discovery = Discovery(self._transport)

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._transport.__aexit__(*exc)

    async def read_version(self) -> str:
        """Return the version of Kubernetes, such as `v1.36.3`."""
        answer = await self._transport.send(Request("GET", "/version"))
        return str(answer.document.get("gitVersion", ""))

    async def find_kind(self, api_version: str, kind: str, *, patience_s: float = 0.0) -> ResourceKind:
        """Return where the objects of a kind are; see `Discovery.find_kind`."""
        return await self._discovery.find_kind(api_version, kind, patience_s=patience_s)

    async def get(self, reference: ObjectReference) -> dict[str, Any]:
        """Return an object.

        Raises:
            ObjectMissingError: There is none of that name.
            KindUnknownError: There is no such kind.
            KubernetesForbiddenError: It may exist, but must not be read.
        """
        path = await self._discovery.find_path(reference)
        return (await self._transport.send(Request("GET", path))).document

    async def find(self, reference: ObjectReference) -> dict[str, Any] | None:
        """Return an object, None if it does not exist or its kind is not served.

        An object that must not be read raises: it is unknown, not absent.
        """
        with contextlib.suppress(ObjectMissingError, KindUnknownError):
            return await self.get(reference)
        return None

    async def list_objects(self, selection: Selection) -> list[dict[str, Any]]:
        """Return the selected objects, read page by page.

        Raises:
            KindUnknownError: There is no such kind.
        """
        return (await self._list(selection))[0]

    async def _list(self, selection: Selection) -> tuple[list[dict[str, Any]], str]:
        """Return the selected objects, and the version that they are of."""
        kind = await self.find_kind(selection.api_version, selection.kind)
        request = Request("GET", kind.path(selection.namespace))
        items: list[dict[str, Any]] = []
        following, version = "", ""
        while True:
            query = selection.query | {"limit": str(_PAGE)} | ({"continue": following} if following else {})
            try:
                document = (await self._transport.send(request, query=query)).document
            except WatchExpiredError:
                # The pages behind this one are of a state that the server no longer has.
                items, following = [], ""
                continue
            metadata = document.get("metadata") or {}
            version = str(metadata.get("resourceVersion", ""))
            for item in document.get("items") or ():
                items.append({"apiVersion": selection.api_version, "kind": selection.kind, **item})
            if not (following := str(metadata.get("continue") or "")):
                return items, version

    async def apply(self, obj: KubernetesObject, options: ApplyOptions = _DEFAULT_OPTIONS) -> Applied:
        """Apply an object on the server's side: create it, or set the fields that it has.

        Raises:
            FieldConflictError: Another manager has set a field to another value; nothing is changed.
            ObjectRejectedError: The object does not fit its schema.
            KindUnknownError: There is no such kind.
        """
        return await apply_object(self._transport, self._discovery, obj, options)

    async def differs(self, obj: KubernetesObject, options: ApplyOptions = _DEFAULT_OPTIONS) -> str:
        """Return what applying an object would change, in words; empty if it would change nothing.

        The server itself compares, in a dry run.
        """
        return await differs(self._transport, self._discovery, obj, options)

    async def delete(self, reference: ObjectReference, *, uid: str = "") -> bool:
        """Delete an object and what depends on it; return whether it was there.

        Args:
            reference: The object.
            uid: Delete it only if it is still that very one, and not another of the same name.
        """
        body: dict[str, Any] = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Background",
        }
        if uid:
            body["preconditions"] = {"uid": uid}
        try:
            path = await self._discovery.find_path(reference)
            await self._transport.send(Request("DELETE", path), body=body)
        except (ObjectMissingError, KindUnknownError):
            return False
        except KubernetesRefusedError as err:
            # A precondition that does not hold: there is another object of that name now.
            if uid and err.status.code == 409:
                return False
            raise
        return True

    async def watch(self, selection: Selection) -> AsyncGenerator[WatchEvent, None]:
        """Yield the selected objects as they are, then each change of them, without end.

        A connection that breaks is resumed where it ended. Where the server no longer has the changes since
        then, the objects are listed again, and what is gone meanwhile is reported as deleted.

        Raises:
            KubernetesUnreachableError: The API server was away for longer than the patience allows.
        """
        kind = await self.find_kind(selection.api_version, selection.kind)
        watched = Watched(
            path=kind.path(selection.namespace),
            query=selection.query,
            read_all=lambda: self._list(selection),
        )
        async with contextlib.aclosing(watch_objects(self._transport, watched, self._patience)) as events:
            async for event in events:
                yield replace(
                    event,
                    object={"apiVersion": selection.api_version, "kind": selection.kind, **event.object},
                )

    async def wait_until(
        self,
        reference: ObjectReference,
        expectation: Expectation,
        *,
        timeout_s: float,
        on_waiting: OnWaiting = ignore_waiting,
    ) -> dict[str, Any]:
        """Watch an object until it is as expected; return it.

        Args:
            reference: The object; it need not exist yet.
            expectation: What to wait for, such as `has_condition("Ready")`.
            timeout_s: For how long.
            on_waiting: Called with what is waited for and why it is not so yet, whenever that changes.

        Raises:
            WaitTimeoutError: It did not become so, with the reason.
            KubernetesUnreachableError: The API server was away for too long.
        """
        selection = Selection(
            api_version=reference.api_version,
            kind=reference.kind,
            namespace=reference.namespace,
            name=reference.name,
        )
        async with contextlib.aclosing(self.watch(selection)) as events:
            return await wait_until(
                events, reference, expectation, timeout_s=timeout_s, on_waiting=on_waiting
            )
