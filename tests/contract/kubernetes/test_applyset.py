"""A set of objects is applied whole, and cleaned of what an earlier version of it applied."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.kubernetes import open_client

from pvelab.kubernetes import RunningKubernetes
from stackyard.clients.kubernetes import (
    ApplyOptions,
    ApplySet,
    KubernetesClient,
    KubernetesError,
    KubernetesForbiddenError,
    ObjectReference,
    Selection,
    apply_set,
    look_at_set,
)
from stackyard.clients.kubernetes.applyset import ApplySetError


def make_objects(namespace: str, *names: str) -> tuple[dict[str, Any], ...]:
    first = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    return (
        *(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}
            for name in names
        ),
        first,
    )


def make_set(namespace: str, *names: str) -> ApplySet:
    return ApplySet(name="base", namespace=namespace, objects=make_objects(namespace, *names))


async def list_names(client: KubernetesClient, namespace: str) -> set[str]:
    found = await client.list_objects(Selection(api_version="v1", kind="ConfigMap", namespace=namespace))
    return {obj["metadata"]["name"] for obj in found} - {"stackyard-inventory-base"}


async def test_what_a_new_version_leaves_out_is_removed_and_nothing_else(
    kube: RunningKubernetes, namespace: str
) -> None:
    async with open_client(kube) as client:
        assert "does not exist" in await look_at_set(client, make_set(namespace, "a", "b"))
        await apply_set(client, make_set(namespace, "a", "b"))
        assert await look_at_set(client, make_set(namespace, "a", "b")) == ""
        (foreign, _) = make_objects(namespace, "foreign")
        await client.apply(foreign, ApplyOptions(manager="someone-else"))
        assert "ConfigMap " + namespace + "/b is left over" in await look_at_set(
            client, make_set(namespace, "a")
        )
        result = await apply_set(client, make_set(namespace, "a", "c"))
        assert [reference.name for reference in result.removed] == ["b"]
        assert await list_names(client, namespace) == {"a", "c", "foreign"}
        assert await look_at_set(client, make_set(namespace, "a", "c")) == ""


async def test_an_object_that_another_has_made_in_its_place_is_kept(
    kube: RunningKubernetes, namespace: str
) -> None:
    async with open_client(kube) as client:
        await apply_set(client, make_set(namespace, "a", "b"))
        gone = ObjectReference("v1", "ConfigMap", "b", namespace)
        await client.delete(gone)
        await client.apply(make_objects(namespace, "b")[0], ApplyOptions(manager="someone-else"))
        result = await apply_set(client, make_set(namespace, "a"))
        assert result.removed == ()
        assert "taken its place" in result.kept[gone]
        assert await list_names(client, namespace) == {"a", "b"}


async def test_an_empty_set_is_refused_instead_of_removing_everything(
    kube: RunningKubernetes, namespace: str
) -> None:
    async with open_client(kube) as client:
        await apply_set(client, make_set(namespace, "a"))
        with pytest.raises(ApplySetError, match="has no object"):
            await apply_set(client, ApplySet(name="base", namespace=namespace, objects=()))
        assert await list_names(client, namespace) == {"a"}


async def test_nothing_is_removed_when_an_object_of_the_new_version_is_refused(
    kube: RunningKubernetes, namespace: str
) -> None:
    async with open_client(kube) as client:
        await apply_set(client, make_set(namespace, "a", "b"))
        with pytest.raises(KubernetesError):
            await apply_set(client, make_set(namespace, "a", "Not A Name"))
        assert await list_names(client, namespace) == {"a", "b"}
        result = await apply_set(client, make_set(namespace, "a"))
        assert [reference.name for reference in result.removed] == ["b"]


async def test_an_object_that_cannot_be_read_is_unknown_and_stays_in_the_inventory(
    kube: RunningKubernetes, namespace: str
) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": namespace}}
    objects = (*make_objects(namespace, "a"), secret)
    async with open_client(kube) as client:
        await apply_set(client, ApplySet(name="base", namespace=namespace, objects=objects))
        rbac = "rbac.authorization.k8s.io"
        user = f"half-{namespace}"
        role = {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": user},
            "rules": [{"apiGroups": [""], "resources": ["configmaps", "namespaces"], "verbs": ["*"]}],
        }
        binding = {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": user},
            "subjects": [{"kind": "User", "name": user, "apiGroup": rbac}],
            "roleRef": {"kind": "ClusterRole", "name": user, "apiGroup": rbac},
        }
        await client.apply(role)
        await client.apply(binding)
        async with open_client(kube, user, ()) as half:
            await _wait_for_role(half, namespace)
            result = await apply_set(half, make_set(namespace, "a"))
        hidden = ObjectReference("v1", "Secret", "s", namespace)
        assert result.kept[hidden].startswith("unknown")
        assert await client.find(hidden) is not None
        result = await apply_set(client, make_set(namespace, "a"))
        assert result.removed == (hidden,), "whoever may see it, removes it"


async def _wait_for_role(client: KubernetesClient, namespace: str) -> None:
    for _ in range(50):
        try:
            await client.find(ObjectReference("v1", "ConfigMap", "a", namespace))
            return
        except KubernetesForbiddenError:
            await asyncio.sleep(0.1)
    raise AssertionError("the role was never in force")


async def test_an_object_without_a_namespace_is_where_its_kind_says(
    kube: RunningKubernetes, namespace: str
) -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []}
    objects: tuple[dict[str, Any], ...] = (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain"}},
        {**role, "metadata": {"name": f"{namespace}-plain"}},
        # Charts write this, although no ClusterRole is in a namespace.
        {**role, "metadata": {"name": f"{namespace}-placed", "namespace": namespace}},
    )
    wanted = ApplySet(name="base", namespace=namespace, objects=objects, default_namespace=namespace)
    async with open_client(kube) as client:
        await apply_set(client, wanted)
        assert await list_names(client, namespace) >= {"plain"}
        assert await look_at_set(client, wanted) == ""
        result = await apply_set(client, ApplySet(name="base", namespace=namespace, objects=objects[:1]))
        assert {reference.kind for reference in result.removed} == {"ConfigMap", "ClusterRole"}
        assert len(result.removed) == 3
