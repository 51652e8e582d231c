"""The steps that speak to a Kubernetes API."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

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
    Selection,
    apply_set,
    has_condition,
    is_rolled_out,
    look_at_set,
    refer_to,
)

__all__ = [
    "ApplyStep",
    "NodesReadyStep",
    "NotProvenError",
    "OpenClient",
    "SecretsStep",
    "observe",
]

_WORKLOADS = ("Deployment", "DaemonSet", "StatefulSet")
_DEFAULT_WAIT_S = 600.0

OpenClient = Callable[[], Awaitable[KubernetesClient]]


async def observe(open_client: OpenClient, look: Callable[[KubernetesClient], Awaitable[str]]) -> Observation:
    """Turn why something is not so into an observation; what cannot be seen is unknown.

    Args:
        open_client: Returns the client of the cluster.
        look: Says why it is not so; empty if it is.
    """
    try:
        client = await open_client()
    except StackyardError as err:
        return unknown(err.detail)
    try:
        reason = await look(client)
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


async def _has_release(client: KubernetesClient, namespace: str, name: str) -> bool:
    """Return whether helm, or a HelmRelease of Flux, has installed a release: it notes each in a Secret."""
    labels = f"owner=helm,name={name}"
    selection = Selection(api_version="v1", kind="Secret", namespace=namespace, labels=labels)
    return bool(await client.list_objects(selection))


def _is_namespace(obj: KubernetesObject, name: str) -> bool:
    return obj.get("kind") == "Namespace" and obj["metadata"]["name"] == name


async def _create_namespaces(client: KubernetesClient, names: Iterable[str]) -> None:
    """Create namespaces; one that is there may have fields of another step, which must not be taken away."""
    for name in names:
        namespace: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        if await client.find(refer_to(namespace)) is None:
            await client.apply(namespace)


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
        open_client: Returns the client of the cluster.
        objects: The objects.
        namespace: Where the inventory of the set is; it is created if it does not exist.
        default_namespace: Where objects go that name no namespace.
        waits_for_workloads: Whether a proof needs pods that run. Without a network there can be none.
        release: The Helm release that owns the objects once it exists: Flux may take a chart over.
        ready: Further objects that must be ready, such as those of an operator.
        force: Whether fields that other managers have set are taken over.
        kind_patience_s: How long to wait for kinds that an operator defines.
        timeout_s: How long a proof may take.
    """

    name: str
    open_client: OpenClient
    objects: tuple[KubernetesObject, ...]
    namespace: str
    default_namespace: str = "default"
    waits_for_workloads: bool = True
    release: str = ""
    ready: tuple[ObjectReference, ...] = ()
    force: bool = False
    kind_patience_s: float = 10.0
    timeout_s: float = _DEFAULT_WAIT_S

    @property
    def set(self) -> ApplySet:
        """The objects as a set."""
        options = ApplyOptions(force=self.force, kind_patience_s=self.kind_patience_s)
        return ApplySet(
            name=self.name,
            namespace=self.namespace,
            objects=self.objects,
            options=options,
            default_namespace=self.default_namespace,
        )

    async def look(self) -> Observation:
        """Let the API server compare what is there with the objects; see `Step.look`."""

        async def compare(client: KubernetesClient) -> str:
            if self.release and await _has_release(client, self.namespace, self.release):
                return ""
            if reason := await look_at_set(client, self.set):
                return reason
            for reference, expectation in self._expected():
                if reason := expectation.judge(await client.find(reference)):
                    return f"{reference} is not {expectation.awaited}: {reason}"
            return ""

        return await observe(self.open_client, compare)

    async def do(self, report: Report) -> None:
        """Apply the objects; see `Step.do`."""
        report(f"{len(self.objects)} objects of {self.name} to be applied")
        client = await self.open_client()
        if not any(_is_namespace(obj, self.namespace) for obj in self.objects):
            await _create_namespaces(client, (self.namespace,))
        result = await apply_set(client, self.set)
        for reference, why in result.kept.items():
            report(f"{reference} is kept: {why}")

    async def prove(self, report: Report) -> None:
        """Wait until the workloads have rolled out; see `Step.prove`."""
        await _wait_for_all(await self.open_client(), self._expected(), self.timeout_s, report)

    def _expected(self) -> list[tuple[ObjectReference, Expectation]]:
        expected = [(reference, has_condition("Ready")) for reference in self.ready]
        if not self.waits_for_workloads:
            return expected
        workloads = [refer_to(obj) for obj in self.objects if obj.get("kind") in _WORKLOADS]
        placed = (replace(one, namespace=one.namespace or self.default_namespace) for one in workloads)
        return expected + [(reference, is_rolled_out()) for reference in placed]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretsStep:
    """Creates secrets and the namespaces that they are in; their values go to the API server alone.

    A namespace that is not needed any more stays: others may have put something into it.

    Attributes:
        open_client: Returns the client of the cluster.
        secrets: The secrets.
        namespace: Where the inventory of the set is.
        name: What the step is called.
    """

    open_client: OpenClient
    secrets: tuple[KubernetesObject, ...]
    namespace: str = "kube-system"
    name: str = "secrets"

    @property
    def set(self) -> ApplySet:
        """The secrets as a set."""
        return ApplySet(name=self.name, namespace=self.namespace, objects=self.secrets)

    async def look(self) -> Observation:
        """Let the API server compare the secrets; see `Step.look`."""
        return await observe(self.open_client, lambda client: look_at_set(client, self.set))

    async def do(self, report: Report) -> None:
        """Create namespaces and secrets; see `Step.do`."""
        report(f"{len(self.secrets)} secrets to be applied")
        client = await self.open_client()
        names = {refer_to(secret).namespace or "default" for secret in self.secrets}
        await _create_namespaces(client, sorted(names))
        await apply_set(client, self.set)

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
        open_client: Returns the client of the cluster.
        nodes: The names of the nodes.
        name: What the step is called.
        timeout_s: How long a proof may take.
    """

    open_client: OpenClient
    nodes: tuple[str, ...]
    name: str = "nodes-ready"
    timeout_s: float = _DEFAULT_WAIT_S

    def _references(self) -> list[ObjectReference]:
        return [ObjectReference("v1", "Node", name) for name in self.nodes]

    async def look(self) -> Observation:
        """Look at each node; see `Step.look`."""

        async def judge(client: KubernetesClient) -> str:
            ready = has_condition("Ready")
            for reference in self._references():
                if reason := ready.judge(await client.find(reference)):
                    return f"{reference} is not ready: {reason}"
            return ""

        return await observe(self.open_client, judge)

    async def do(self, report: Report) -> None:
        """Do nothing but say so: nodes join by themselves; see `Step.do`."""
        report(f"{len(self.nodes)} nodes to join")

    async def prove(self, report: Report) -> None:
        """Wait for every node; see `Step.prove`."""
        ready = has_condition("Ready")
        expected = [(reference, ready) for reference in self._references()]
        await _wait_for_all(await self.open_client(), expected, self.timeout_s, report)
