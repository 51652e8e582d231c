"""The steps that speak to a Kubernetes API."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import StackyardError, UnreachableError
from stackyard.bootstrap.step import Observation, Report, absent, present, unknown
from stackyard.clients.kubernetes import (
    ApplyOptions,
    ApplySet,
    Expectation,
    KubernetesClient,
    KubernetesForbiddenError,
    KubernetesLoginError,
    KubernetesObject,
    ObjectReference,
    apply_set,
    has_condition,
    is_rolled_out,
    look_at_set,
    refer_to,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["ApplyStep", "NodesReadyStep", "NotProvenError", "ReconciledStep", "SecretsStep"]

_WORKLOADS = ("Deployment", "DaemonSet", "StatefulSet")
_FLUX_GROUPS = ("source.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io")
_DEFAULT_WAIT_S = 600.0
# Which request for a reconciliation it was: Flux compares the value, whatever it is.
_REQUESTED = "reconcile.fluxcd.io/requestedAt"


async def _observe(look: Callable[[], Awaitable[str]]) -> Observation:
    """Turn why something is not so into an observation; what cannot be seen is unknown."""
    try:
        reason = await look()
    except (UnreachableError, KubernetesForbiddenError, KubernetesLoginError) as err:
        return unknown(err.detail)
    except StackyardError as err:
        return absent(err.detail)
    return absent(reason) if reason else present()


async def _wait_for_all(
    client: KubernetesClient,
    expected: list[tuple[ObjectReference, Expectation]],
    timeout_s: float,
    report: Report,
) -> None:
    """Wait for objects at the same time; report all that did not come, not only the first."""
    waits = (
        client.wait_until(reference, expectation, timeout_s=timeout_s, on_waiting=report)
        for reference, expectation in expected
    )
    found = await asyncio.gather(*waits, return_exceptions=True)
    failures = [row for row in found if isinstance(row, BaseException)]
    if len(failures) > 1 and all(isinstance(row, StackyardError) for row in failures):
        raise NotProvenError("\n".join(str(row) for row in failures), remedy=_CONTINUE)
    if failures:
        raise failures[0]


class NotProvenError(StackyardError):
    """A step was done, and its result is not there."""

    code = "E-BOOTSTRAP-PROOF"
    summary = "A step of the cold boot had no effect"
    default_remedy = "Another program may have changed it back. Find out which, then run the command again."


_CONTINUE = "Correct what the reasons name, then run the command again: it continues from here."


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyStep:
    """Applies a set of objects, and waits until its workloads have rolled out.

    Attributes:
        name: What the step is called; it names the set as well.
        client: The client of the cluster.
        objects: The objects.
        namespace: Where the inventory of the set is.
        waits_for_workloads: Whether a proof needs pods that run. Without a network there can be none.
        ready: Further objects that must be ready, such as those of an operator.
        force: Whether fields that other managers have set are taken over.
        kind_patience_s: How long to wait for kinds that an operator defines.
        timeout_s: How long a proof may take.
    """

    name: str
    client: KubernetesClient
    objects: tuple[KubernetesObject, ...]
    namespace: str
    waits_for_workloads: bool = True
    ready: tuple[ObjectReference, ...] = ()
    force: bool = False
    kind_patience_s: float = 10.0
    timeout_s: float = _DEFAULT_WAIT_S

    @property
    def set(self) -> ApplySet:
        """The objects as a set."""
        options = ApplyOptions(force=self.force, kind_patience_s=self.kind_patience_s)
        return ApplySet(name=self.name, namespace=self.namespace, objects=self.objects, options=options)

    async def look(self) -> Observation:
        """Let the API server compare what is there with the objects; see `Step.look`."""

        async def compare() -> str:
            if reason := await look_at_set(self.client, self.set):
                return reason
            for reference, expectation in self._expected():
                if reason := expectation.judge(await self.client.find(reference)):
                    return f"{reference} is not {expectation.awaited}: {reason}"
            return ""

        return await _observe(compare)

    async def do(self, report: Report) -> None:
        """Apply the objects; see `Step.do`."""
        report(f"{len(self.objects)} objects of {self.name} to be applied")
        result = await apply_set(self.client, self.set)
        for reference, why in result.kept.items():
            report(f"{reference} is kept: {why}")

    async def prove(self, report: Report) -> None:
        """Wait until the workloads have rolled out; see `Step.prove`."""
        await _wait_for_all(self.client, self._expected(), self.timeout_s, report)

    def _expected(self) -> list[tuple[ObjectReference, Expectation]]:
        expected = [(reference, has_condition("Ready")) for reference in self.ready]
        if not self.waits_for_workloads:
            return expected
        workloads = [refer_to(obj) for obj in self.objects if obj.get("kind") in _WORKLOADS]
        return expected + [(reference, is_rolled_out()) for reference in workloads]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretsStep:
    """Creates secrets and the namespaces that they are in; their values go to the API server alone.

    A namespace that is not needed any more stays: others may have put something into it.

    Attributes:
        client: The client of the cluster.
        secrets: The secrets.
        namespace: Where the inventory of the set is.
        name: What the step is called.
    """

    client: KubernetesClient
    secrets: tuple[KubernetesObject, ...]
    namespace: str = "kube-system"
    name: str = "secrets"

    @property
    def set(self) -> ApplySet:
        """The secrets as a set."""
        return ApplySet(name=self.name, namespace=self.namespace, objects=self.secrets)

    def _namespaces(self) -> list[dict[str, Any]]:
        names = sorted({refer_to(secret).namespace or "default" for secret in self.secrets})
        return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]

    async def look(self) -> Observation:
        """Let the API server compare the secrets; see `Step.look`."""
        return await _observe(lambda: look_at_set(self.client, self.set))

    async def do(self, report: Report) -> None:
        """Create namespaces and secrets; see `Step.do`."""
        report(f"{len(self.secrets)} secrets to be applied")
        for namespace in self._namespaces():
            # One that is there may have fields of another step, which this one must not take away.
            if await self.client.find(refer_to(namespace)) is None:
                await self.client.apply(namespace)
        await apply_set(self.client, self.set)

    async def prove(self, report: Report) -> None:
        """See that the API server has them; see `Step.prove`."""
        del report
        found = await self.look()
        if found.reason:
            raise NotProvenError(f"The secrets are not in the cluster as they were applied: {found.reason}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesReadyStep:
    """Waits until the nodes of a cluster are ready, which they are once they have a network.

    Attributes:
        client: The client of the cluster.
        nodes: The names of the nodes.
        name: What the step is called.
        timeout_s: How long a proof may take.
    """

    client: KubernetesClient
    nodes: tuple[str, ...]
    name: str = "nodes-ready"
    timeout_s: float = _DEFAULT_WAIT_S

    def _references(self) -> list[ObjectReference]:
        return [ObjectReference("v1", "Node", name) for name in self.nodes]

    async def look(self) -> Observation:
        """Look at each node; see `Step.look`."""

        async def judge() -> str:
            ready = has_condition("Ready")
            for reference in self._references():
                if reason := ready.judge(await self.client.find(reference)):
                    return f"{reference} is not ready: {reason}"
            return ""

        return await _observe(judge)

    async def do(self, report: Report) -> None:
        """Do nothing but say so: nodes join by themselves; see `Step.do`."""
        report(f"{len(self.nodes)} nodes to join")

    async def prove(self, report: Report) -> None:
        """Wait for every node; see `Step.prove`."""
        ready = has_condition("Ready")
        expected = [(reference, ready) for reference in self._references()]
        await _wait_for_all(self.client, expected, self.timeout_s, report)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciledStep:
    """Waits until Flux has fetched the source and applied every Kustomization.

    Flux's controllers set the conditions; this step only reads them, and asks for a reconciliation.

    Attributes:
        client: The client of the cluster.
        objects: The objects of Flux to wait for, the source first.
        revision: A part of the revision that must be applied, such as a commit; empty takes any.
        name: What the step is called.
        timeout_s: How long a proof may take.
    """

    client: KubernetesClient
    objects: tuple[ObjectReference, ...]
    revision: str = ""
    name: str = "reconciled"
    timeout_s: float = 1800.0

    async def look(self) -> Observation:
        """Look at the conditions; see `Step.look`."""

        async def judge() -> str:
            return next(iter((await self._pending()).values()), "")

        return await _observe(judge)

    async def _pending(self) -> dict[ObjectReference, str]:
        """Return the objects that are not ready, each with the reason."""
        expectation = has_condition("Ready", revision=self.revision)
        found: dict[ObjectReference, str] = {}
        for reference in self.objects:
            if reason := expectation.judge(await self.client.find(reference)):
                found[reference] = f"{reference} is not ready: {reason}"
        return found

    async def do(self, report: Report) -> None:
        """Ask Flux to reconcile what is not ready now, not at its next interval; see `Step.do`."""
        for reference, reason in (await self._pending()).items():
            report(reason)
            found = await self.client.find(reference)
            if found is None or reference.group not in _FLUX_GROUPS:
                continue
            await self.client.apply(_request(reference, found), _REQUESTS)

    async def prove(self, report: Report) -> None:
        """Wait for every object; see `Step.prove`."""
        expectation = has_condition("Ready", revision=self.revision)
        for reference in self.objects:
            await self.client.wait_until(reference, expectation, timeout_s=self.timeout_s, on_waiting=report)


# Another manager than for the objects themselves: whoever applies them does not remove the request.
_REQUESTS = replace(ApplyOptions(), manager="stackyard-reconcile", force=True)


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
