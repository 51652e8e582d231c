"""The step that waits for Flux: everything in the repository is applied, as it is there now."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stackyard.base.backoff import Backoff
from stackyard.bootstrap.kubernetes.steps import OpenClient, observe
from stackyard.clients.git.remote import GitUnreachableError
from stackyard.clients.kubernetes import ApplyOptions, WaitTimeoutError, has_condition

if TYPE_CHECKING:
    from stackyard.bootstrap.step import Observation, Report
    from stackyard.clients.kubernetes import KubernetesClient, ObjectReference

__all__ = ["ReadRevision", "ReconciledStep"]

ReadRevision = Callable[[], Awaitable[str]]

_FLUX_GROUPS = ("source.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io")
# Which request for a reconciliation it was: Flux compares the value, whatever it is.
_REQUESTED = "reconcile.fluxcd.io/requestedAt"
# Another manager than for the objects themselves: whoever applies them does not remove the request.
_REQUESTS = replace(ApplyOptions(), manager="stackyard-reconcile", force=True)
# A host that is away tells no one when it is back.
_GIT_AGAIN = Backoff(first_s=0.5, longest_s=15.0)
# After this time the repository may have moved on, and Flux with it.
_SAME_REVISION_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciledStep:
    """Waits until Flux has fetched the source and applied every Kustomization.

    Flux's controllers set the conditions; this step only reads them, and asks for a reconciliation. A
    condition may be of an earlier commit. So the step asks the Git host itself which one is the present one.

    Attributes:
        open_client: Returns the client of the cluster.
        objects: The objects of Flux to wait for, the source first.
        read_revision: Returns a part of the revision that must be applied, such as a commit.
        name: What the step is called.
        timeout_s: How long a proof may take.
    """

    open_client: OpenClient
    objects: tuple[ObjectReference, ...]
    read_revision: ReadRevision
    name: str = "reconciled"
    timeout_s: float = 1800.0

    async def look(self) -> Observation:
        """Look at the conditions, and at the repository; see `Step.look`."""

        async def judge(client: KubernetesClient) -> str:
            pending = await self._list_pending(client)
            # A host that is away does not hide that something is not ready.
            pending = pending or await self._list_pending(client, await self.read_revision())
            return next(iter(pending.values()), "")

        return await observe(self.open_client, judge)

    async def _list_pending(self, client: KubernetesClient, revision: str = "") -> dict[ObjectReference, str]:
        """Return the objects that are not ready at a revision, each with the reason."""
        expectation = has_condition("Ready", revision=revision)
        found: dict[ObjectReference, str] = {}
        for reference in self.objects:
            if reason := expectation.judge(await client.find(reference)):
                found[reference] = f"{reference} is not ready: {reason}"
        return found

    async def do(self, report: Report) -> None:
        """Ask Flux to reconcile now, not at its next interval; see `Step.do`."""
        client = await self.open_client()
        pending = await self._list_pending(client)
        for reason in pending.values():
            report(reason)
        for reference in pending or self.objects:
            found = await client.find(reference)
            if found is not None and reference.group in _FLUX_GROUPS:
                await client.apply(_request(reference, found), _REQUESTS)

    async def prove(self, report: Report) -> None:
        """Wait for every object, at the revision that the repository is at; see `Step.prove`.

        Raises:
            WaitTimeoutError: One of them is not ready in time, with the reason.
            GitUnreachableError: Flux is ready, and nothing says whether at the present revision.
            StackyardError: The cluster or the Git host refuses.
        """
        client, ends = await self.open_client(), time.monotonic() + self.timeout_s
        await self._wait(client, "", self.timeout_s, report)
        revision = await self._await_revision(ends, report)
        while True:
            left_s = max(0.0, ends - time.monotonic())
            try:
                return await self._wait(client, revision, min(left_s, _SAME_REVISION_S), report)
            except WaitTimeoutError:
                if time.monotonic() >= ends:
                    raise
            if (newer := await self._await_revision(ends, report)) != revision:
                revision = newer
                await self.do(report)

    async def _wait(self, client: KubernetesClient, revision: str, timeout_s: float, report: Report) -> None:
        expectation, ends = has_condition("Ready", revision=revision), time.monotonic() + timeout_s
        for reference in self.objects:
            left_s = max(0.0, ends - time.monotonic())
            await client.wait_until(reference, expectation, timeout_s=left_s, on_waiting=report)

    async def _await_revision(self, ends: float, report: Report) -> str:
        for pause_s in _GIT_AGAIN:
            try:
                return await self.read_revision()
            except GitUnreachableError as err:
                if time.monotonic() + pause_s > ends:
                    raise
                report(err.detail)
            await asyncio.sleep(pause_s)
        raise AssertionError("pauses have no end")


def _request(reference: ObjectReference, found: dict[str, Any]) -> dict[str, Any]:
    version = str(found["metadata"].get("resourceVersion", ""))
    return {
        "apiVersion": reference.api_version,
        "kind": reference.kind,
        "metadata": {
            "name": reference.name,
            "namespace": reference.namespace,
            "annotations": {_REQUESTED: f"version-{version}"},
        },
    }
