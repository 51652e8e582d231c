"""The server for an engine: its messages are those of the protocol, and nothing that it lets in is lost."""

from __future__ import annotations

import asyncio
import inspect
import json
import tomllib
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from grpclib.client import Channel
from grpclib.protocol import Connection
from grpclib.server import Server
from tests.unit.provider.test_servicer import stub
from tf.gen import tfplugin_pb2 as theirs  # type: ignore[import-untyped]

from stackyard import provider
from stackyard.provider import messages
from stackyard.provider.messages import pb
from stackyard.provider.servicer import Servicer

ROOT = Path(__file__).parents[3]


def found(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part)
    return module.DESCRIPTOR


def fields(descriptor: Any) -> dict[str, Any]:
    return {
        one.name: (
            one.number,
            one.type,
            one.label,
            one.message_type and one.message_type.full_name,
            one.enum_type and one.enum_type.full_name,
            one.containing_oneof and one.containing_oneof.name,
        )
        for one in descriptor.fields
    }


# Fields that the other implementation does not know yet; `test_provider_kinds.py` shows that engines do.
NEWER = {"Schema.Attribute": {"write_only"}}


@pytest.mark.parametrize("name", [name for name in messages.MESSAGES if name != "Empty"])
def test_a_message_is_what_others_know_under_its_name(name: str) -> None:
    ours, known = fields(found(pb, name)), fields(found(theirs, name))
    newer = NEWER.get(name, set())
    assert {field: ours[field] for field in ours.keys() - newer} == {
        field: known[field] for field in ours.keys() - newer
    }


@pytest.mark.parametrize("name", messages.ENUMS)
def test_an_enum_has_the_values_that_others_know(name: str) -> None:
    outer, _, inner = name.rpartition(".")
    ours, known = (found(module, outer).enum_types_by_name[inner] for module in (pb, theirs))
    assert ours.values_by_name.keys() == known.values_by_name.keys()
    assert [one.number for one in ours.values] == [one.number for one in known.values]


def test_every_call_of_the_protocol_is_answered() -> None:
    calls = {one.name for one in theirs.DESCRIPTOR.services_by_name["Provider"].methods}
    assert {name for name in calls if inspect.iscoroutinefunction(getattr(Servicer, name, None))} == calls


async def test_a_call_that_is_not_known_is_refused_as_one_and_the_others_go_on() -> None:
    async with provider.serve() as served:
        ((_, address),) = json.loads(served.reattach).items()
        async with grpc.aio.insecure_channel(f"unix://{address['Addr']['String']}") as channel:
            newer = channel.unary_unary("/tfplugin6.Provider/GetResourceIdentitySchemas")
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await newer(b"")
            assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
            stop = channel.unary_unary("/tfplugin6.Provider/StopProvider")
            assert await stop(b"") == b""


async def test_a_message_of_many_megabytes_comes_and_goes() -> None:
    content = b'"' + b"x" * 30_000_000 + b'"'
    request = theirs.PlanResourceChange.Request(
        type_name="proxmox_virtual_environment_pool", prior_private=content
    )
    # What the engines allow.
    sizes = [(f"grpc.max_{way}_message_length", 256 * 2**20) for way in ("send", "receive")]
    async with provider.serve() as served:
        ((_, address),) = json.loads(served.reattach).items()
        socket = f"unix://{address['Addr']['String']}"
        async with grpc.aio.insecure_channel(socket, options=sizes) as channel:
            plan = channel.unary_unary("/tfplugin6.Provider/PlanResourceChange")
            answer = await plan(request.SerializeToString(), timeout=60)
    assert theirs.PlanResourceChange.Response.FromString(answer).planned_private == content


async def test_any_number_of_calls_may_wait_and_the_one_to_stop_is_still_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped = asyncio.Event()
    waiting = []

    async def wait(self: Servicer, request: Any) -> Any:
        waiting.append(request)
        await stopped.wait()
        return pb.ValidateProviderConfig.Response()

    async def stop(self: Servicer, request: Any) -> Any:
        assert len(waiting) == 150
        stopped.set()
        return pb.StopProvider.Response()

    monkeypatch.setattr(Servicer, "ValidateProviderConfig", wait)
    monkeypatch.setattr(Servicer, "StopProvider", stop)
    async with stub() as it, asyncio.timeout(30):
        calls = [it.ValidateProviderConfig(theirs.ValidateProviderConfig.Request()) for _ in range(150)]
        while len(waiting) < len(calls):
            await asyncio.sleep(0.01)
        await it.StopProvider(theirs.StopProvider.Request())
        await asyncio.gather(*calls)


async def test_it_ends_although_an_engine_stays_connected() -> None:
    async with asyncio.timeout(10):
        async with provider.serve() as served:
            ((_, address),) = json.loads(served.reattach).items()
            channel = grpc.aio.insecure_channel(f"unix://{address['Addr']['String']}")
            await channel.unary_unary("/tfplugin6.Provider/StopProvider")(b"")
        await channel.close()


def test_private_names_of_grpclib_are_there_and_its_minor_version_is_pinned() -> None:
    # There is no public way to lift the limit of calls at once, or to close the connections of a server.
    assert "_protocol_factory" in vars(Server)
    assert "self._connection" in inspect.getsource(Connection)
    assert "self._transport" in inspect.getsource(Connection)
    assert "_protocol" in vars(Channel)
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert any(one.startswith("grpclib") and one.endswith("<0.5") for one in wanted)
