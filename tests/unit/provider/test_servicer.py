"""The wire: what an engine may send, sense or not, and what it gets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from tests.support.provider_bench import KNOWN
from tf.gen import tfplugin_pb2 as pb  # type: ignore[import-untyped]
from tf.gen import tfplugin_pb2_grpc as rpc

from stackyard import lab, provider
from stackyard.provider.values import UNKNOWN, decode, encode

POOL = "proxmox_virtual_environment_pool"


@asynccontextmanager
async def stub(**environment: str) -> AsyncIterator[Any]:
    """Give a client of a provider that is served."""
    async with (
        provider.serve(provider.Options(environment=environment)) as served,
        connect(served) as client,
    ):
        yield client


@asynccontextmanager
async def connect(served: provider.RunningProvider) -> AsyncIterator[Any]:
    """Give a client with a connection of its own."""
    ((_, address),) = json.loads(served.reattach).items()
    target = f"unix://{address['Addr']['String']}"
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(target, options=options) as channel:
        yield rpc.ProviderStub(channel)


@contextlib.asynccontextmanager
async def run(**environment: str) -> AsyncIterator[Any]:
    async with stub(**environment) as it:
        yield it


def value(content: Any) -> Any:
    return pb.DynamicValue(msgpack=encode(content))


def settings(running: lab.Running, **changes: Any) -> Any:
    given = {
        "endpoint": running.url,
        "username": running.username,
        "password": running.password,
        "insecure": True,
        **changes,
    }
    return pb.ConfigureProvider.Request(config=value(KNOWN.provider.block.complete(given)))


async def test_the_schema_has_every_attribute_of_the_facts() -> None:
    async with run() as it:
        answer = await it.GetProviderSchema(pb.GetProviderSchema.Request())
        assert set(answer.resource_schemas) == set(KNOWN.resources)
        assert set(answer.data_source_schemas) == set(KNOWN.data_sources)
        vm = answer.resource_schemas[POOL].block
        assert {one.name: one.required for one in vm.attributes}["pool_id"] is True
        sensitive = [one.name for one in answer.provider.block.attributes if one.sensitive]
        assert "password" in sensitive
        metadata = await it.GetMetadata(pb.GetMetadata.Request())
        assert {one.type_name for one in metadata.resources} == set(KNOWN.resources)


async def test_without_settings_configuring_is_refused_in_words() -> None:
    async with run() as it:
        empty = value(KNOWN.provider.block.empty())
        answer = await it.ConfigureProvider(pb.ConfigureProvider.Request(config=empty))
        assert "no endpoint" in answer.diagnostics[0].detail
        assert answer.diagnostics[0].summary.endswith("(E-PROVIDER-SETTINGS)")


async def test_settings_that_are_not_known_yet_are_asked_for_only_when_needed() -> None:
    async with run() as it:
        config = KNOWN.provider.block.complete({"endpoint": UNKNOWN})
        answer = await it.ConfigureProvider(pb.ConfigureProvider.Request(config=value(config)))
        assert list(answer.diagnostics) == []
        state = KNOWN.resources[POOL].schema.block.complete({"id": "a", "pool_id": "a"})
        read = await it.ReadResource(pb.ReadResource.Request(type_name=POOL, current_state=value(state)))
        assert "not known yet" in read.diagnostics[0].detail
        assert decode(read.new_state.msgpack) == state


async def test_each_connection_has_the_configuration_that_it_was_given() -> None:
    async with (
        lab.start(nodes=("pve1",)) as first,
        lab.start(nodes=("pve1",)) as second,
        provider.serve() as served,
        connect(served) as one,
        connect(served) as other,
    ):
        for running, it in ((first, one), (second, other), (first, one)):
            answer = await it.ConfigureProvider(settings(running))
            assert list(answer.diagnostics) == []
        planned = KNOWN.resources[POOL].schema.block.complete({"pool_id": "a", "comment": "", "id": UNKNOWN})
        request = pb.ApplyResourceChange.Request(
            type_name=POOL, prior_state=value(None), planned_state=value(planned)
        )
        made = await other.ApplyResourceChange(request)
        assert list(made.diagnostics) == []
        assert set(second.world.store.items("pools")) == {"a"}
        assert set(first.world.store.items("pools")) == set()
        # The other cluster has no such pool: that one is made there too, and is not the same.
        assert list((await one.ApplyResourceChange(request)).diagnostics) == []
        assert set(first.world.store.items("pools")) == {"a"}
        assert len(served.journal.entries) == 2


async def test_a_configuration_that_is_not_known_yet_does_not_get_that_of_another() -> None:
    async with (
        lab.start(nodes=("pve1",)) as running,
        provider.serve() as served,
        connect(served) as one,
        connect(served) as other,
    ):
        await one.ConfigureProvider(settings(running))
        unknown = KNOWN.provider.block.complete({"endpoint": UNKNOWN})
        await other.ConfigureProvider(pb.ConfigureProvider.Request(config=value(unknown)))
        state = KNOWN.resources[POOL].schema.block.complete({"id": "a", "pool_id": "a"})
        read = await other.ReadResource(pb.ReadResource.Request(type_name=POOL, current_state=value(state)))
        assert "not known yet" in read.diagnostics[0].detail


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"endpoint": "https://127.0.0.1:9"}, "E-PROXMOX-UNREACHABLE"),
        ({"insecure": None}, "E-PROXMOX-UNTRUSTED"),
        ({"password": "canary-0815"}, "E-PROXMOX-LOGIN"),
        ({"api_token": "root@pam!x=canary-0815"}, "E-PROXMOX-LOGIN"),
    ],
    ids=["address", "certificate", "password", "token"],
)
async def test_a_cluster_that_does_not_let_us_in_is_one_clear_error(
    changes: dict[str, Any], code: str
) -> None:
    async with lab.start(nodes=("pve1",)) as running, stub() as it:
        refused = await it.ConfigureProvider(settings(running, **changes))
        assert len(refused.diagnostics) == 1
        assert refused.diagnostics[0].summary.endswith(f"({code})")
        assert "canary" not in str(refused)
        accepted = await it.ConfigureProvider(settings(running))
        assert list(accepted.diagnostics) == []


async def test_a_state_of_another_time_is_refused_and_an_older_form_is_made_whole() -> None:
    async with run() as it:

        def request(version: int, state: bytes) -> Any:
            raw = pb.RawState(json=state)
            return pb.UpgradeResourceState.Request(type_name=POOL, version=version, raw_state=raw)

        newer = await it.UpgradeResourceState(request(7, b"{}"))
        assert "another time" in newer.diagnostics[0].detail
        older = await it.UpgradeResourceState(request(0, b'{"id": "a", "pool_id": "a", "gone": true}'))
        assert decode(older.upgraded_state.msgpack) == {
            "id": "a",
            "pool_id": "a",
            "comment": None,
            "members": None,
        }


async def test_a_state_moves_between_the_names_of_one_resource_and_no_others() -> None:
    async with run() as it:

        def request(source: str) -> Any:
            return pb.MoveResourceState.Request(
                source_provider_address="registry.example/bpg/proxmox",
                source_type_name=source,
                source_state=pb.RawState(json=b'{"id": "zone"}'),
                target_type_name="proxmox_sdn_zone_simple",
            )

        moved = await it.MoveResourceState(request("proxmox_virtual_environment_sdn_zone_simple"))
        assert decode(moved.target_state.msgpack)["id"] == "zone"
        refused = await it.MoveResourceState(request("proxmox_virtual_environment_sdn_zone_vlan"))
        assert "is not another name" in refused.diagnostics[0].detail


async def test_an_import_with_a_senseless_id_is_refused() -> None:
    async with run() as it:
        request = pb.ImportResourceState.Request(type_name="proxmox_network_linux_bridge", id="nonsense")
        answer = await it.ImportResourceState(request)
        assert "NODE:INTERFACE" in answer.diagnostics[0].detail
        assert list(answer.imported_resources) == []


@pytest.mark.parametrize(
    "request_",
    [
        pb.PlanResourceChange.Request(type_name="proxmox_no_such_thing"),
        pb.PlanResourceChange.Request(
            type_name=POOL, proposed_new_state=pb.DynamicValue(msgpack=b"\xc1\xff\x00")
        ),
        pb.PlanResourceChange.Request(type_name=POOL, proposed_new_state=value([1, 2])),
    ],
    ids=["unknown-type", "garbage", "wrong-shape"],
)
async def test_senseless_messages_end_the_call_and_nothing_else(request_: Any) -> None:
    async with run() as it:
        with pytest.raises(grpc.aio.AioRpcError):
            await it.PlanResourceChange(request_)
        answer = await it.GetMetadata(pb.GetMetadata.Request())
        assert list(answer.resources)


async def test_stopping_ends_a_wait_with_what_is_there_and_the_next_run_starts_afresh() -> None:
    async with lab.start(nodes=("pve1",)) as running, stub() as it:
        await it.ConfigureProvider(settings(running))
        name = running.add_fault("drop", method="PUT", path="/nodes/pve1/network")
        known = KNOWN.resources["proxmox_network_linux_bridge"].schema.block
        planned = known.complete(
            {
                "node_name": "pve1",
                "name": "vmbr7",
                "autostart": True,
                "timeout_reload": 100,
                "id": UNKNOWN,
            }
        )
        request = pb.ApplyResourceChange.Request(
            type_name="proxmox_network_linux_bridge",
            prior_state=value(None),
            planned_state=value(planned),
        )
        apply = asyncio.ensure_future(it.ApplyResourceChange(request))
        while running.world.faults.rules()[name][2] == 0:
            await asyncio.sleep(0.01)
        await it.StopProvider(pb.StopProvider.Request())
        answer = await apply
        assert "E-INTERRUPTED" in answer.diagnostics[0].summary
        assert decode(answer.new_state.msgpack)["id"] == "pve1:vmbr7"
        running.remove_fault(name)
        await it.ConfigureProvider(settings(running))
        read = await it.ReadResource(
            pb.ReadResource.Request(type_name="proxmox_network_linux_bridge", current_state=answer.new_state)
        )
        assert list(read.diagnostics) == []


async def test_a_long_name_of_the_temporary_folder_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("deep" * 20)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))

    async with run() as it:
        assert list((await it.GetMetadata(pb.GetMetadata.Request())).resources)
