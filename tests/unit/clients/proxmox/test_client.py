"""Calls of a lab, with everything that can go wrong between us and it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from stackyard import lab
from stackyard.base.errors import InterruptedRunError, UnreachableError
from stackyard.clients import proxmox

Scenario = Callable[[lab.Running, proxmox.Client], Awaitable[None]]


def in_lab(scenario: Scenario, **changes: Any) -> None:
    async def run() -> None:
        async with (
            lab.start(nodes=("pve1",)) as running,
            proxmox.Client(connection(running, **changes)) as client,
        ):
            await scenario(running, client)

    asyncio.run(run())


def connection(running: lab.Running, **changes: Any) -> proxmox.Connection:
    given: dict[str, Any] = {
        "endpoint": running.url,
        "credentials": proxmox.Token(text=running.api_token),
        "trust": proxmox.Trust(fingerprint=running.fingerprint),
        "patience_s": 60.0,
    }
    return proxmox.Connection(**{**given, **changes})


async def made(client: proxmox.Client, vmid: int) -> None:
    upid = await client.post("/nodes/pve1/qemu", {"vmid": vmid})
    await proxmox.wait_for(client, upid, timeout_s=60)


def calls(running: lab.Running, method: str, path: str) -> int:
    journal = running.world.journal.entries()
    return sum(1 for one in journal if (one.method, one.path) == (method, path))


def test_a_refusal_says_which_call_and_what_proxmox_answered() -> None:
    async def scenario(_running: lab.Running, client: proxmox.Client) -> None:
        with pytest.raises(proxmox.RefusedError) as raised:
            await client.post("/nodes/pve1/qemu", {"vmid": "x"})
        assert str(raised.value.call) == "POST /nodes/pve1/qemu"
        assert raised.value.status == 400
        assert "vmid: type check ('integer') failed" in raised.value.detail

    in_lab(scenario)


def test_what_does_not_exist_is_an_error_of_its_own() -> None:
    async def scenario(_running: lab.Running, client: proxmox.Client) -> None:
        with pytest.raises(proxmox.MissingError, match=r"101\.conf' does not exist"):
            await client.get("/nodes/pve1/qemu/101/config")
        # Proxmox calls this a parameter that is not valid.
        with pytest.raises(proxmox.MissingError, match="iface: interface does not exist"):
            await client.get("/nodes/pve1/network/vmbr99")

    in_lab(scenario)


def test_a_read_survives_connections_that_break() -> None:
    async def scenario(running: lab.Running, client: proxmox.Client) -> None:
        running.add_fault("drop", method="GET", times=2)
        assert (await client.get("/version"))["version"]

    in_lab(scenario)


def test_a_read_that_is_never_answered_ends_as_unreachable() -> None:
    async def scenario(running: lab.Running, client: proxmox.Client) -> None:
        running.add_fault("drop", method="GET")
        with pytest.raises(UnreachableError, match="GET /version was not answered"):
            await client.get("/version")

    in_lab(scenario)


def test_a_lost_answer_of_a_create_is_never_sent_again() -> None:
    async def scenario(running: lab.Running, client: proxmox.Client) -> None:
        running.add_fault("drop", method="POST", path="/pools", when="after", times=1)
        with pytest.raises(proxmox.AnswerLostError):
            await client.post("/pools", {"poolid": "once"})
        assert [pool["poolid"] for pool in await client.get("/pools")] == ["once"]

    in_lab(scenario)


@pytest.mark.parametrize("verb", ["PUT", "DELETE"])
def test_a_change_on_a_kept_connection_is_sent_once_unless_it_may_be_repeated(verb: str) -> None:
    async def scenario(running: lab.Running, client: proxmox.Client) -> None:
        await client.post("/pools", {"poolid": "once"})
        name = running.add_fault("drop", method=verb, path="/pools/once", when="after", times=5)
        send = client.put if verb == "PUT" else client.delete
        with pytest.raises(proxmox.AnswerLostError):
            await send("/pools/once", repeatable=False)
        _, _, times_used = running.world.faults.rules()[name]
        assert times_used == 1

    in_lab(scenario)


def test_a_change_that_may_be_repeated_is() -> None:
    async def scenario(running: lab.Running, client: proxmox.Client) -> None:
        await client.post("/pools", {"poolid": "p"})
        running.add_fault("drop", method="PUT", when="after", times=2)
        await client.put("/pools", {"poolid": "p", "comment": "said once"})
        assert (await client.get("/pools", {"poolid": "p"}))[0]["comment"] == "said once"

    in_lab(scenario)


def test_a_locked_guest_is_waited_for() -> None:
    async def scenario(running: lab.Running, client: proxmox.Client) -> None:
        await made(client, 100)
        name = running.add_fault("lock", vmid=100)
        change = asyncio.create_task(client.put("/nodes/pve1/qemu/100/config", {"cores": 4}))
        while not any(one.status == 500 for one in running.world.journal.entries()):
            await asyncio.sleep(0)
        running.remove_fault(name)
        await change
        assert (await client.get("/nodes/pve1/qemu/100/config"))["cores"] == 4

    in_lab(scenario)


def test_patience_with_a_lock_has_an_end() -> None:
    async def scenario(running: lab.Running, client: proxmox.Client) -> None:
        await made(client, 100)
        running.add_fault("lock", vmid=100)
        with pytest.raises(proxmox.RefusedError, match=r"VM is locked \(backup\)"):
            await client.put("/nodes/pve1/qemu/100/config", {"cores": 4})

    in_lab(scenario, patience_s=0.1)


def test_a_wait_ends_when_we_are_asked_to_stop() -> None:
    async def scenario(running: lab.Running, client: proxmox.Client) -> None:
        await made(client, 100)
        running.add_fault("lock", vmid=100)
        change = asyncio.create_task(client.put("/nodes/pve1/qemu/100/config", {"cores": 4}))
        client.stopping.set()
        with pytest.raises(InterruptedRunError):
            await change

    in_lab(scenario)


def test_identical_reads_at_the_same_time_are_one_call() -> None:
    async def scenario(running: lab.Running, client: proxmox.Client) -> None:
        answers = await asyncio.gather(*(client.get("/cluster/resources", {"type": "vm"}) for _ in range(20)))
        assert answers == [[]] * 20
        assert calls(running, "GET", "/cluster/resources") == 1

    in_lab(scenario)


def test_an_answer_is_given_again_only_while_it_is_young_and_nothing_was_written() -> None:
    async def scenario(running: lab.Running, client: proxmox.Client) -> None:
        await client.get("/pools", max_age_s=60)
        await client.get("/pools", max_age_s=60)
        assert calls(running, "GET", "/pools") == 1
        await client.post("/pools", {"poolid": "new"})
        assert len(await client.get("/pools", max_age_s=60)) == 1
        await client.get("/pools")
        assert calls(running, "GET", "/pools") == 3

    in_lab(scenario)


def test_a_reader_that_gives_up_does_not_take_the_others_along() -> None:
    async def scenario(running: lab.Running, client: proxmox.Client) -> None:
        running.add_fault("delay", seconds=0.2, method="GET")
        first, second = (asyncio.create_task(client.get("/version")) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second)["version"]
        assert first.cancelled()

    in_lab(scenario)


@pytest.mark.parametrize("kind", ["login", "token"])
def test_wrong_credentials_are_refused_without_showing_them(kind: str) -> None:
    wrong: dict[str, proxmox.Login | proxmox.Token] = {
        "login": proxmox.Login(username="root@pam", password="canary-4711"),
        "token": proxmox.Token(text="root@pam!lab=canary-4711"),
    }

    async def scenario(_running: lab.Running, client: proxmox.Client) -> None:
        with pytest.raises(proxmox.LoginRefusedError) as raised:
            await client.get("/version")
        assert "canary" not in raised.value.detail

    in_lab(scenario, credentials=wrong[kind])


def test_a_ticket_that_has_expired_is_renewed() -> None:
    async def scenario(running: lab.Running) -> None:
        login = proxmox.Login(username=running.username, password=running.password)
        async with proxmox.Client(connection(running, credentials=login)) as client:
            await client.get("/version")
            running.add_fault("tickets-expired")
            await client.post("/pools", {"poolid": "after"})
            assert calls(running, "POST", "/access/ticket") == 2

    asyncio.run(with_lab(scenario))


def test_a_hundred_calls_log_in_once() -> None:
    async def scenario(running: lab.Running) -> None:
        login = proxmox.Login(username=running.username, password=running.password)
        async with proxmox.Client(connection(running, credentials=login)) as client:
            await asyncio.gather(*(client.post("/pools", {"poolid": f"p{n}"}) for n in range(100)))
            assert calls(running, "POST", "/access/ticket") == 1

    asyncio.run(with_lab(scenario))


async def with_lab(scenario: Callable[[lab.Running], Awaitable[None]]) -> None:
    async with lab.start(nodes=("pve1",)) as running:
        await scenario(running)


@pytest.mark.parametrize(
    ("trust", "said"),
    [
        (proxmox.Trust(), "cannot be verified: self-signed certificate"),
        (proxmox.Trust(fingerprint="00" * 32), "not the one given"),
    ],
)
def test_another_server_than_the_trusted_one_is_refused_at_once(trust: proxmox.Trust, said: str) -> None:
    async def scenario(running: lab.Running, client: proxmox.Client) -> None:
        with pytest.raises(proxmox.UntrustedServerError, match=said):
            await client.get("/version")
        assert list(running.world.journal.entries()) == []

    in_lab(scenario, trust=trust)


def test_nothing_that_listens_is_unreachable() -> None:
    async def scenario(running: lab.Running) -> None:
        given = connection(running, endpoint="https://127.0.0.1:9")
        async with proxmox.Client(given) as client:
            with pytest.raises(proxmox.ProxmoxUnreachableError, match="POST /pools could not be sent"):
                await client.post("/pools", {"poolid": "p"})

    asyncio.run(with_lab(scenario))


def test_a_failed_task_quotes_its_end_and_its_log() -> None:
    async def scenario(running: lab.Running, client: proxmox.Client) -> None:
        running.add_fault("task", text="no space left on device", task="qmcreate")
        upid = await client.post("/nodes/pve1/qemu", {"vmid": 100})
        with pytest.raises(proxmox.TaskFailedError, match="no space left on device") as raised:
            await proxmox.wait_for(client, upid, timeout_s=60)
        assert raised.value.upid == upid

    in_lab(scenario)


async def test_a_task_that_does_not_end_in_time_is_named() -> None:
    async def scenario(running: lab.Running) -> None:
        async with proxmox.Client(connection(running)) as client:
            upid = await client.post("/nodes/pve1/qemu", {"vmid": 100})
            with pytest.raises(proxmox.TaskTimeoutError, match=upid.split(":")[5]):
                await proxmox.wait_for(client, upid, timeout_s=0.1)
            assert await proxmox.find_running_task(client, "pve1", kind="qmcreate", about="100") == upid

    async with lab.start(nodes=("pve1",), speed="real", latency_s={"create": 3600.0}) as running:
        await scenario(running)


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    async def scenario(_running: lab.Running, client: proxmox.Client) -> None:
        assert (await client.get("/version"))["version"]

    in_lab(scenario)
