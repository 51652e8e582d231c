"""The client does the same with the double of the lab and with a real kube-apiserver."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from tests.support.kubernetes import open_client, wait_in_vain

from pvelab.kubernetes import RunningKubernetes
from stackyard.clients.kubernetes import (
    ApplyOptions,
    Change,
    FieldConflictError,
    KindUnknownError,
    KubernetesClient,
    KubernetesForbiddenError,
    ObjectMissingError,
    ObjectReference,
    ObjectRejectedError,
    Selection,
    WatchChange,
    has_condition,
    is_applied_by,
    is_gone,
)

OTHER = ApplyOptions(manager="someone-else")
CRD = "apiextensions.k8s.io/v1"


def make_namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def make_map(namespace: str, name: str = "settings", **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def refer(namespace: str, name: str = "settings", kind: str = "ConfigMap") -> ObjectReference:
    return ObjectReference("v1", kind, name, namespace)


def make_definition(group: str) -> dict[str, Any]:
    properties = {
        "size": {"type": "integer"},
        "colour": {"type": "string", "enum": ["red", "green"]},
        "mode": {"type": "string", "default": "auto"},
    }
    spec = {"type": "object", "required": ["size"], "properties": properties}
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"}
    return {
        "apiVersion": CRD,
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def make_widget(group: str, namespace: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "one", "namespace": namespace}
    return {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


async def test_an_object_is_created_then_changed_then_left_alone(
    kube: RunningKubernetes, namespace: str
) -> None:
    async with open_client(kube) as client:
        assert (await client.apply(make_namespace(namespace))).change is Change.CREATED
        assert (await client.apply(make_map(namespace, a="1", b="2"))).change is Change.CREATED
        assert (await client.apply(make_map(namespace, a="1", b="2"))).change is Change.UNCHANGED
        assert (await client.apply(make_map(namespace, a="3"))).change is Change.CONFIGURED
        found = await client.get(refer(namespace))
        assert found["data"] == {"a": "3"}, "a field that is no longer applied is removed"
        assert is_applied_by(found, "stackyard")


async def test_a_dry_run_says_what_would_change_and_changes_nothing(
    kube: RunningKubernetes, namespace: str
) -> None:
    async with open_client(kube) as client:
        await client.apply(make_namespace(namespace))
        assert "does not exist" in await client.differs(make_map(namespace, a="1"))
        await client.apply(make_map(namespace, a="1"))
        assert await client.differs(make_map(namespace, a="1")) == ""
        assert "differs in .data.a" in await client.differs(make_map(namespace, a="2"))
        assert (await client.get(refer(namespace)))["data"] == {"a": "1"}
        assert "was not applied by" in await client.differs(make_map(namespace, a="1"), OTHER)


async def test_a_conflict_names_the_field_and_its_manager_and_needs_a_word_to_be_forced(
    kube: RunningKubernetes, namespace: str
) -> None:
    async with open_client(kube) as client:
        await client.apply(make_namespace(namespace))
        await client.apply(make_map(namespace, a="1", b="1"), OTHER)
        with pytest.raises(FieldConflictError, match="someone-else") as caught:
            await client.apply(make_map(namespace, a="2", b="1"))
        assert [cause.field for cause in caught.value.status.causes] == [".data.a"]
        assert "nothing is taken over" in caught.value.remedy
        assert (await client.get(refer(namespace)))["data"]["a"] == "1"
        await client.apply(make_map(namespace, a="2", b="1"), ApplyOptions(force=True))
        found = await client.get(refer(namespace))
        assert found["data"] == {"a": "2", "b": "1"}
        await client.apply(make_map(namespace, b="1"), OTHER)
        assert (await client.get(refer(namespace)))["data"]["a"] == "2", "it is ours alone now"


async def test_two_managers_own_different_parts_of_one_object(
    kube: RunningKubernetes, namespace: str
) -> None:
    def make_workload(**container: Any) -> dict[str, Any]:
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", **container}]}}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": namespace},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        }

    async with open_client(kube) as client:
        await client.apply(make_namespace(namespace))
        await client.apply(make_workload(image="web:1"))
        await client.apply(make_workload(image="web:1", env=[{"name": "LEVEL", "value": "info"}]), OTHER)
        with pytest.raises(FieldConflictError, match=r'containers\[name="web"\].image'):
            await client.apply(make_workload(image="web:2"))
        with pytest.raises(FieldConflictError, match="stackyard"):
            await client.apply(make_workload(image="web:2"), OTHER)
        found = await client.get(ObjectReference("apps/v1", "Deployment", "web", namespace))
        container = found["spec"]["template"]["spec"]["containers"][0]
        assert (container["image"], container["env"][0]["value"]) == ("web:1", "info")


async def test_a_secret_is_stored_whole_and_no_error_shows_its_value(
    kube: RunningKubernetes, namespace: str
) -> None:
    value = base64.b64encode(b"AGE-SECRET-KEY-1QQQQ").decode()
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "sops-age", "namespace": namespace},
        "data": {"age.agekey": value},
    }
    async with open_client(kube) as client:
        with pytest.raises(ObjectMissingError, match="namespace") as missing:
            await client.apply(secret)
        assert value not in missing.value.detail
        await client.apply(make_namespace(namespace))
        await client.apply(secret)
        found = await client.get(refer(namespace, "sops-age", "Secret"))
        assert base64.b64decode(found["data"]["age.agekey"]) == b"AGE-SECRET-KEY-1QQQQ"
        broken = {**secret, "data": {"age.agekey": "not base64, but a secret!"}}
        with pytest.raises(ObjectRejectedError) as refused:
            await client.apply(broken)
        assert "but a secret" not in refused.value.detail


async def test_every_cause_of_a_refusal_is_listed(kube: RunningKubernetes, namespace: str) -> None:
    group = f"{namespace}.example.com"
    async with open_client(kube) as client:
        await client.apply(make_namespace(namespace))
        with pytest.raises(KindUnknownError, match="Widget"):
            await client.apply(make_widget(group, namespace, size=1), ApplyOptions(kind_patience_s=0.0))
        definition = await client.apply(make_definition(group))
        await client.wait_until(definition.reference, has_condition("Established"), timeout_s=20.0)
        with pytest.raises(ObjectRejectedError) as refused:
            await client.apply(make_widget(group, namespace, colour="blue"))
        fields = {cause.field for cause in refused.value.status.causes}
        assert {"spec.size", "spec.colour"} <= fields
        assert "spec.size" in refused.value.detail
        assert "spec.colour" in refused.value.detail
        with pytest.raises(ObjectRejectedError):
            await client.apply(make_widget(group, namespace, size="large"))
        with pytest.raises(ObjectRejectedError, match="weight"):
            await client.apply(make_widget(group, namespace, size=1, weight=2))
        applied = await client.apply(make_widget(group, namespace, size=1, colour="red"))
        assert applied.object["spec"]["mode"] == "auto", "the default of the schema"
        assert (
            await client.apply(make_widget(group, namespace, size=1, colour="red"))
        ).change is Change.UNCHANGED


async def test_what_a_user_may_not_read_is_forbidden_and_never_absent(
    kube: RunningKubernetes, namespace: str
) -> None:
    async with open_client(kube) as client:
        await client.apply(make_namespace(namespace))
        await client.apply(make_map(namespace, a="1"))
    async with open_client(kube, "guest", ()) as guest:
        with pytest.raises(KubernetesForbiddenError, match='User "guest" cannot get resource "configmaps"'):
            await guest.find(refer(namespace))
        with pytest.raises(KubernetesForbiddenError):
            await guest.list_objects(Selection(api_version="v1", kind="Secret"))


async def test_a_role_allows_what_it_names_and_nothing_else(kube: RunningKubernetes, namespace: str) -> None:
    rbac = "rbac.authorization.k8s.io"
    role = {
        "apiVersion": f"{rbac}/v1",
        "kind": "Role",
        "metadata": {"name": "reader", "namespace": namespace},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}],
    }
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "reader", "namespace": namespace},
        "subjects": [{"kind": "User", "name": f"reader-{namespace}", "apiGroup": rbac}],
        "roleRef": {"kind": "Role", "name": "reader", "apiGroup": rbac},
    }
    async with open_client(kube) as client:
        for obj in (make_namespace(namespace), role, binding, make_map(namespace, a="1")):
            await client.apply(obj)
    async with open_client(kube, f"reader-{namespace}", ()) as reader:
        for _ in range(20):
            # The API server learns of a new role from its own watch.
            try:
                found = await reader.get(refer(namespace))
                break
            except KubernetesForbiddenError:
                await asyncio.sleep(0.1)
        assert found["data"] == {"a": "1"}
        with pytest.raises(KubernetesForbiddenError):
            await reader.delete(refer(namespace))


async def test_a_long_list_comes_whole_in_pages(kube: RunningKubernetes, namespace: str) -> None:
    async with open_client(kube) as client:
        await client.apply(make_namespace(namespace))
        gate = asyncio.Semaphore(16)

        async def add(number: int) -> None:
            async with gate:
                await client.apply(make_map(namespace, f"map-{number:04}", n=str(number)))

        await asyncio.gather(*(add(number) for number in range(520)))
        found = await client.list_objects(Selection(api_version="v1", kind="ConfigMap", namespace=namespace))
        names = [obj["metadata"]["name"] for obj in found if obj["metadata"]["name"].startswith("map-")]
        assert names == [f"map-{number:04}" for number in range(520)]
        assert found[0]["kind"] == "ConfigMap"


async def test_labels_select_objects(kube: RunningKubernetes, namespace: str) -> None:
    async with open_client(kube) as client:
        await client.apply(make_namespace(namespace))
        for name, tier in (("a", "front"), ("b", "back"), ("c", "front")):
            obj = make_map(namespace, name)
            obj["metadata"]["labels"] = {"tier": tier}
            await client.apply(obj)
        for labels, names in (
            ("tier=front", "ac"),
            ("tier!=front,tier", "b"),
            ("tier in (back, front)", "abc"),
        ):
            selection = Selection(api_version="v1", kind="ConfigMap", namespace=namespace, labels=labels)
            found = await client.list_objects(selection)
            assert "".join(obj["metadata"]["name"] for obj in found) == names


async def _collect(
    client: KubernetesClient, selection: Selection, count: int, started: asyncio.Event
) -> list[str]:
    seen: list[str] = []
    async for event in client.watch(selection):
        if event.change is WatchChange.LISTED:
            started.set()
            continue
        seen.append(f"{event.change} {event.object['metadata']['name']}")
        if len(seen) == count:
            break
    return seen


async def test_a_watch_reports_what_is_there_and_every_change(
    kube: RunningKubernetes, namespace: str
) -> None:
    async with open_client(kube) as client:
        await client.apply(make_namespace(namespace))
        await client.apply(make_map(namespace, "old", a="1"))
        labelled = make_map(namespace, "old", a="1")
        labelled["metadata"]["labels"] = {"watched": "yes"}
        await client.apply(labelled)
        selection = Selection(api_version="v1", kind="ConfigMap", namespace=namespace, labels="watched")
        started = asyncio.Event()
        watching = asyncio.create_task(_collect(client, selection, 4, started))
        await started.wait()
        new = {**labelled, "metadata": {**labelled["metadata"], "name": "new"}}
        await client.apply(new)
        await client.apply({**new, "data": {"a": "2"}})
        await client.delete(refer(namespace, "new"))
        assert await asyncio.wait_for(watching, 20.0) == [
            "PRESENT old",
            "ADDED new",
            "MODIFIED new",
            "DELETED new",
        ]


async def test_a_condition_that_others_set_ends_a_wait_and_a_wait_says_why_it_goes_on(
    kube: RunningKubernetes, namespace: str
) -> None:
    group = f"{namespace}.example.com"
    reasons: list[str] = []
    waiting = asyncio.Event()

    def note(text: str) -> None:
        reasons.append(text)
        waiting.set()

    async with open_client(kube) as client:
        await client.apply(make_namespace(namespace))
        definition = await client.apply(make_definition(group))
        await client.wait_until(definition.reference, has_condition("Established"), timeout_s=20.0)
        applied = await client.apply(make_widget(group, namespace, size=1))
        wait = client.wait_until(applied.reference, has_condition("Ready"), timeout_s=20.0, on_waiting=note)
        task = asyncio.create_task(wait)
        await waiting.wait()
        for status, reason in (("False", "Cloning"), ("True", "Succeeded")):
            await _set_condition(kube, applied.reference, status, reason)
        found = await task
        assert found["status"]["conditions"][0]["reason"] == "Succeeded"
        assert "the condition Ready is not set yet" in reasons[0]
        in_vain = wait_in_vain(lambda s: client.wait_until(applied.reference, is_gone(), timeout_s=s))
        assert "it still exists" in await in_vain


async def _set_condition(
    kube: RunningKubernetes, reference: ObjectReference, status: str, reason: str
) -> None:
    """Do what a controller does: write the status through its own path."""
    from stackyard.clients.kubernetes.failures import Request  # lazy: only controllers write a status

    async with open_client(kube) as controller:
        path = await controller._discovery.find_path(reference)
        row = {"type": "Ready", "status": status, "reason": reason, "message": "said by a test"}
        row["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        body = {
            "apiVersion": reference.api_version,
            "kind": reference.kind,
            "metadata": {"name": reference.name, "namespace": reference.namespace},
            "status": {"conditions": [row]},
        }
        query = {"fieldManager": "controller", "force": "true"}
        await controller._transport.send(Request("PATCH", f"{path}/status"), query=query, body=body)


async def test_a_deletion_of_another_object_of_the_same_name_does_nothing(
    kube: RunningKubernetes, namespace: str
) -> None:
    async with open_client(kube) as client:
        await client.apply(make_namespace(namespace))
        await client.apply(make_map(namespace, a="1"))
        assert not await client.delete(refer(namespace), uid="00000000-0000-0000-0000-000000000000")
        assert await client.find(refer(namespace)) is not None
        assert await client.delete(refer(namespace))
        assert not await client.delete(refer(namespace)), "it is gone already"
        await client.wait_until(refer(namespace), is_gone(), timeout_s=10.0)


async def test_a_finalizer_keeps_an_object_until_its_owner_lets_it_go(
    kube: RunningKubernetes, namespace: str
) -> None:
    async with open_client(kube) as client:
        await client.apply(make_namespace(namespace))
        obj = make_map(namespace, a="1")
        obj["metadata"]["finalizers"] = ["example.com/keep"]
        await client.apply(obj)
        await client.delete(refer(namespace))
        in_vain = wait_in_vain(lambda s: client.wait_until(refer(namespace), is_gone(), timeout_s=s))
        assert "it waits for example.com/keep" in await in_vain
        await client.apply(make_map(namespace, a="1"))
        await client.wait_until(refer(namespace), is_gone(), timeout_s=10.0)
