"""What goes over the wire: envelopes, status lines, texts and types, as Proxmox sends them."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused, Reply, lab_client

from pvelab import Speed, Work


@contextlib.asynccontextmanager
async def with_lab(**options: Any) -> AsyncIterator[LabClient]:
    async with lab_client(**options) as api:
        yield api


def asked(method: str, path: str, *, headers: dict[str, str] | None = None, **options: Any) -> Reply:
    """Ask a fresh lab one thing; with headers, those instead of root's token."""

    async def main() -> Reply:
        async with lab_client() as api:
            client = api if headers is None else api.with_headers(headers)
            return await client.raw(method, path, **options)

    return asyncio.run(main())


def test_a_success_is_data_in_an_envelope() -> None:
    reply = asked("GET", "/version")
    assert (reply.status, reply.reason) == (200, "OK")
    assert reply.headers["Content-Type"] == "application/json;charset=UTF-8"
    assert list(reply.json) == ["data"]
    assert reply.data["version"] == "9.2.3"


@pytest.mark.parametrize(
    ("method", "path", "status", "reason", "errors"),
    [
        (
            *("GET", "/cluster/nextid?vmid=x", 400, "Parameter verification failed."),
            {"vmid": "type check ('integer') failed - got 'x'"},
        ),
        (
            *("GET", "/nodes/pve1/qemu/100/config", 500),
            *("Configuration file 'nodes/pve1/qemu-server/100.conf' does not exist", None),
        ),
        ("GET", "/nodes/pve1/foo", 501, "Method 'GET /nodes/pve1/foo' not implemented", None),
        (
            *("POST", "/nodes/pve1/execute", 501, "Method 'POST /nodes/pve1/execute' not implemented"),
            None,
        ),
        ("PATCH", "/version", 501, "method 'PATCH' not available", None),
        (
            *("GET", "/nodes/nope/status", 500),
            "hostname lookup 'nope' failed - failed to get address info for: nope: Name or service not known",
            None,
        ),
        (
            *("GET", "/nodes/pve1/tasks/UPID:x/status", 400, "Parameter verification failed."),
            {"upid": "unable to parse worker upid"},
        ),
        (
            *("GET", "/nodes/pve1/tasks/UPID:pve1:00000001:00000001:00000001:a:b:root@pam:/status", 400),
            *("Parameter verification failed.", {"upid": "no such task"}),
        ),
    ],
)
def test_a_refusal_has_its_text_in_the_reason_and_closes_the_connection(
    method: str, path: str, status: int, reason: str, errors: dict[str, str] | None
) -> None:
    reply = asked(method, path)
    assert reply.status == status
    assert reply.reason.startswith(reason)
    assert reply.headers["Connection"] == "close"
    expected: dict[str, Any] = {"data": None, "message": f"{reply.reason}\n"}
    assert reply.json == ({**expected, "errors": errors} if errors else expected)


def test_a_method_that_only_the_lab_lacks_is_named() -> None:
    reply = asked("POST", "/nodes/pve1/execute")
    assert reply.reason.endswith(": the lab does not have POST /nodes/{node}/execute")


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({}, "No ticket"),
        ({"Cookie": "PVEAuthCookie=PVE:root@pam:65A1B2C3::c2ln"}, "Authentication failed!"),
        ({"Cookie": "PVEAuthCookie=garbage"}, "Authentication failed!"),
        ({"Authorization": "PVEAPIToken=root@pam!lab=wrong"}, "Authentication failed!"),
        ({"Authorization": "PVEAPIToken=nobody@pam!x=1"}, "Authentication failed!"),
        ({"Authorization": "PVEAPIToken=root@pam"}, "Authentication failed!"),
        ({"Authorization": "Basic cm9vdDpyb290"}, "No ticket"),
    ],
)
def test_who_is_not_known_gets_an_empty_401(headers: dict[str, str], reason: str) -> None:
    reply = asked("GET", "/version", headers=headers)
    assert (reply.status, reply.reason, reply.body) == (401, reason, b"")


def test_a_refused_login_is_json() -> None:
    reply = asked("POST", "/access/ticket", headers={}, data={"username": "root@pam", "password": "no"})
    assert (reply.status, reply.reason) == (401, "authentication failure")
    assert reply.data is None


def test_the_other_format_answers_200_always() -> None:
    reply = asked("GET", "/nodes/pve1/qemu/100/config", base="/api2/extjs")
    assert (reply.status, reply.reason) == (200, "OK")
    assert (reply.json["success"], reply.json["status"]) == (0, 500)
    assert "does not exist" in reply.json["message"]
    assert asked("GET", "/version", base="/api2/extjs").json["success"] == 1


@pytest.mark.parametrize(
    ("method", "options", "status", "reason"),
    [
        ("DELETE", {"data": b"a=1"}, 501, "Unexpected content for method 'DELETE'"),
        ("POST", {"data": b"x" * (512 * 1024 + 1)}, 501, "for data too large"),
        (
            "POST",
            {"data": b"{", "headers": {"Content-Type": "application/json"}},
            500,
            "malformed JSON string",
        ),
        (
            "POST",
            {"data": b"[]", "headers": {"Content-Type": "application/json"}},
            500,
            "malformed JSON string",
        ),
        ("POST", {"data": b"a", "headers": {"Content-Type": "text/xml"}}, 506, "upload 'Content-Type"),
    ],
)
def test_a_body_that_is_not_wanted_is_refused(
    method: str, options: dict[str, Any], status: int, reason: str
) -> None:
    async def main() -> Reply:
        async with lab_client() as api:
            return await api.raw(method, "/nodes/pve1/qemu", **options)

    reply = asyncio.run(main())
    assert (reply.status, reply.reason[: len(reason)]) == (status, reason)


def test_a_chunked_body_is_refused() -> None:
    async def chunks() -> Any:
        yield b"vmid=100"

    reply = asked("POST", "/nodes/pve1/qemu", data=chunks())
    assert (reply.status, reply.reason) == (501, "chunked transfer encoding not supported")


@pytest.mark.parametrize("path", ["/", "/../../etc/passwd", "/api2/xml/version", "/%2e%2e/%2e%2e/etc/shadow"])
def test_a_path_outside_the_api_is_refused(path: str) -> None:
    reply = asked("GET", path, base="")
    assert (reply.status, reply.reason) == (501, "no such uri")


async def test_json_bodies_and_doubled_slashes_are_taken() -> None:
    async with with_lab() as api:
        reply = await api.raw(
            "POST",
            "//nodes//pve1/qemu/",
            data=b'{"vmid": 100, "cores": 2, "onboot": true}',
            headers={"Content-Type": "application/json"},
        )
        assert await api.done(reply.data) == "OK"
        config = await api.get("/nodes/pve1/qemu/100/config")
        assert (config["cores"], config["onboot"]) == (2, 1)


async def test_a_parameter_in_path_and_body_must_agree() -> None:
    async with with_lab() as api:
        await api.post("/nodes/pve1/qemu", vmid=100)
        await api.put("/nodes/pve1/qemu/100/config", vmid=100, cores=2)
        with pytest.raises(Refused) as caught:
            await api.put("/nodes/pve1/qemu/100/config", vmid=101, cores=2)
        text = "duplicate parameter (already defined in URI) with conflicting values!"
        assert caught.value.errors == {"vmid": text}


async def test_a_ticket_needs_its_csrf_token_to_change_something_and_expires() -> None:
    async with with_lab() as api:
        login = await api.with_headers({}).post(
            "/access/ticket", username="root", realm="pam", password=api.running.password
        )
        assert login["username"] == "root@pam"
        assert login["ticket"].split(":")[1] == "root@pam"
        assert login["cap"]["vms"]["VM.Allocate"] == 1
        cookie = {"Cookie": f"PVEAuthCookie={login['ticket']}"}
        ticket = api.with_headers(cookie)
        assert (await ticket.get("/version"))["release"] == "9.2"
        with pytest.raises(Refused, match="401 Permission denied - invalid csrf token"):
            await ticket.post("/nodes/pve1/qemu", vmid=100)
        whole = api.with_headers({**cookie, "CSRFPreventionToken": login["CSRFPreventionToken"]})
        assert await api.done(await whole.post("/nodes/pve1/qemu", vmid=100)) == "OK"
        api.world.clock.advance(3600)
        renewed = await api.with_headers({}).post(
            "/access/ticket", username="root@pam", password=login["ticket"]
        )
        api.world.clock.advance(3700)
        with pytest.raises(Refused, match="401 Authentication failed!"):
            await ticket.get("/version")
        fresh = api.with_headers({"Cookie": f"PVEAuthCookie={renewed['ticket']}"})
        assert (await fresh.get("/version"))["release"] == "9.2"


async def test_a_refused_caller_waits_three_seconds_of_lab_time() -> None:
    async with with_lab(latency_s={Work.AUTH: 3.0}, speed=Speed.INSTANT) as api:
        api.world.clock.hold()
        refused = asyncio.create_task(api.with_headers({}).raw("GET", "/version"))
        while not api.world.clock.sleepers:
            await asyncio.sleep(0.001)
        assert not refused.done()
        api.world.clock.advance(3)
        assert (await refused).status == 401


async def test_old_and_new_tls_are_spoken() -> None:
    async with with_lab() as api:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.minimum_version = context.maximum_version = version
            reply = await api.raw("GET", "/version", ssl=context)
            assert reply.status == 200
