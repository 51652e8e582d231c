"""A step that is killed anywhere is completed by the next run, which finds everything that was made."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.kubernetes import always, open_client

from pvelab.kubernetes import serve_double
from stackyard.bootstrap import Presence
from stackyard.bootstrap.kubernetes import ApplyStep, SecretsStep, SecretValues
from stackyard.clients.kubernetes import KubernetesClient, Selection

NAMES = tuple(f"map-{number}" for number in range(4))


def make_objects(*names: str) -> tuple[dict[str, Any], ...]:
    def make(name: str) -> dict[str, Any]:
        metadata = {"name": name, "namespace": "base"}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": name}}

    return ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "base"}}, *map(make, names))


def make_step(client: KubernetesClient, *names: str) -> ApplyStep:
    return ApplyStep(name="base", open_client=always(client), objects=make_objects(*names), namespace="base")


async def list_names(client: KubernetesClient) -> set[str]:
    found = await client.list_objects(Selection(api_version="v1", kind="ConfigMap", namespace="base"))
    return {obj["metadata"]["name"] for obj in found} - {"stackyard-inventory-base"}


@pytest.mark.parametrize("writes", range(1, 9))
async def test_a_set_that_is_killed_after_any_write_is_completed_and_cleaned(writes: int) -> None:
    async with serve_double() as kube, open_client(kube) as client:
        assert kube.api is not None
        store = kube.api.cluster.store
        for names in (NAMES, (*NAMES[2:], "new")):
            until = store.version + writes
            doing = asyncio.create_task(make_step(client, *names).do(lambda _: None))
            while store.version < until and not doing.done():
                await asyncio.wait(
                    (doing, asyncio.ensure_future(store.wait(store.version, 5.0))),
                    return_when=asyncio.FIRST_COMPLETED,
                )
            doing.cancel()
            await asyncio.gather(doing, return_exceptions=True)
        step = make_step(client, "last")
        assert (await step.look()).presence is Presence.ABSENT
        await step.do(lambda _: None)
        assert (await step.look()).presence is Presence.PRESENT
        assert await list_names(client) == {"last"}, "nothing of the killed runs is left"


async def test_secrets_leave_the_namespaces_of_other_steps_as_they_are() -> None:
    async with serve_double() as kube, open_client(kube) as client:
        step = make_step(client, "one")
        await step.do(lambda _: None)
        secret = SecretValues(namespace="base", name="token", values={"token": "value"}).make_object()
        secrets = SecretsStep(open_client=always(client), secrets=(secret,))
        await secrets.do(lambda _: None)
        await secrets.prove(lambda _: None)
        assert (await step.look()).presence is Presence.PRESENT
        assert (await secrets.look()).presence is Presence.PRESENT
