"""Notifications: endpoints, matchers, and test messages that really arrive on this machine."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from tests.support.lab import LabClient, Refused, lab_client

from stackyard.lab.resources.notifications.delivery import is_match

N = "/cluster/notifications"
ENDPOINTS: dict[str, dict[str, Any]] = {
    "gotify": {"server": "http://gotify.example", "token": "s3cret"},
    "sendmail": {"mailto": ["ann@example.org", "bob@example.org"], "author": "Lab"},
    "smtp": {
        "server": "mail.example.org",
        "from-address": "lab@example.org",
        "mailto-user": ["root@pam"],
        "mode": "starttls",
        "port": 587,
        "username": "lab",
        "password": "s3cret",
    },
    "webhook": {
        "url": "http://hook.example/{{ title }}",
        "method": "post",
        "header": ["name=Content-Type,value=dGV4dC9wbGFpbg=="],
        "body": base64.b64encode(b"{{ message }}").decode(),
        "secret": ["name=token,value=czNjcmV0"],
    },
}
SHOWN_NOT = {"gotify": {"token"}, "smtp": {"password"}, "sendmail": set[str](), "webhook": set[str]()}


def run(test: Callable[[LabClient], Awaitable[None]], nodes: tuple[str, ...] = ("pve1", "pve2")) -> None:
    async def main() -> None:
        async with lab_client(nodes=nodes) as api:
            await test(api)

    asyncio.run(main())


def test_a_new_lab_has_what_proxmox_brings_along() -> None:
    async def test(api: LabClient) -> None:
        assert await api.get(f"{N}/targets") == [
            {
                "name": "mail-to-root",
                "type": "sendmail",
                "origin": "builtin",
                "comment": "Send mails to root@pam's email address",
            }
        ]
        (matcher,) = await api.get(f"{N}/matchers")
        assert (matcher["name"], matcher["target"], matcher["origin"]) == (
            *("default-matcher", ["mail-to-root"]),
            "builtin",
        )
        await api.put(f"{N}/matchers/default-matcher", comment="mine")
        assert (await api.get(f"{N}/matchers/default-matcher"))["origin"] == "modified-builtin"
        await api.delete(f"{N}/matchers/default-matcher")
        assert (await api.get(f"{N}/matchers/default-matcher"))["origin"] == "builtin"
        assert [one["name"] for one in await api.get(f"{N}/endpoints")] == [*ENDPOINTS]
        assert {"name": "matchers"} in await api.get(N)
        assert {"name": "hostname"} in await api.get(f"{N}/matcher-fields")

    run(test)


@pytest.mark.parametrize("kind", ENDPOINTS)
def test_an_endpoint_is_kept_and_its_secrets_are_never_shown(kind: str) -> None:
    async def test(api: LabClient) -> None:
        path, given = f"{N}/endpoints/{kind}", ENDPOINTS[kind]
        await api.post(path, name="mine", comment="c", **given)
        shown = await api.get(f"{path}/mine")
        expected = {key: value for key, value in given.items() if key not in SHOWN_NOT[kind]}
        if kind == "webhook":
            expected["secret"] = ["name=token"]
        digest = shown.pop("digest")
        assert shown == {"name": "mine", "comment": "c", "origin": "user-created", **expected}
        assert "s3cret" not in json.dumps(shown)
        assert "mine" in [one["name"] for one in await api.get(path)]
        with pytest.raises(Refused, match="400 Cannot create 'mine', an entity with the same name already"):
            await api.post(path, name="mine", **given)
        with pytest.raises(Refused, match="400 detected modified configuration"):
            await api.put(f"{path}/mine", comment="d", digest="0" * 40)
        await api.put(f"{path}/mine", delete=["comment"], disable=1, digest=digest)
        shown = await api.get(f"{path}/mine")
        assert "comment" not in shown
        assert shown["disable"] == 1
        await api.post(f"{N}/matchers", name="uses", target=["mine"])
        with pytest.raises(Refused, match="400 cannot delete 'mine', referenced by: uses"):
            await api.delete(f"{path}/mine")
        await api.delete(f"{N}/matchers/uses")
        await api.delete(f"{path}/mine")
        with pytest.raises(Refused, match="404 endpoint 'mine' not found"):
            await api.get(f"{path}/mine")

    run(test)


@pytest.mark.parametrize(
    ("method", "path", "params", "text"),
    [
        (
            "POST",
            "/endpoints/smtp",
            {"server": "x", "from-address": "a@b.c"},
            "400 must at least provide one",
        ),
        ("POST", "/endpoints/sendmail", {}, "400 must at least provide one recipient"),
        ("POST", "/endpoints/gotify", {"server": "x"}, "400 Parameter verification failed"),
        (
            "POST",
            "/endpoints/webhook",
            {"url": "http://x", "method": "post", "header": ["name=a,value=%%"]},
            "400 header 'a' does not have valid base64 encoded data",
        ),
        (
            "POST",
            "/endpoints/webhook",
            {"url": "http://x", "method": "post", "header": ["name=a"]},
            "400 header 'a' has empty value",
        ),
        (
            "POST",
            "/endpoints/webhook",
            {"url": "http://x", "method": "post", "secret": ["name=a,value=YQ==", "name=a,value=YQ=="]},
            "400 secret 'a' defined multiple times",
        ),
        ("POST", "/matchers", {"target": ["nobody"]}, "404 endpoint 'nobody' does not exist"),
        ("POST", "/matchers", {"match-field": ["type"]}, "invalid match-field statement: type"),
        ("POST", "/matchers", {"match-field": ["regex:type=["]}, "invalid regex"),
        ("POST", "/matchers", {"match-severity": ["grave"]}, "unknown severity grave"),
        ("POST", "/matchers", {"match-calendar": ["18-8"]}, "could not parse schedule"),
        ("PUT", "/matchers/nobody", {"comment": "c"}, "404 matcher 'nobody' not found"),
        ("PUT", "/endpoints/sendmail/mail-to-root", {"delete": ["name"]}, "unknown variant `name`"),
        ("PUT", "/endpoints/gotify/mail-to-root", {"comment": "c"}, "404 endpoint 'mail-to-root' not found"),
        ("POST", "/targets/nobody/test", {}, "404 endpoint 'nobody' does not exist"),
    ],
)
def test_what_does_not_fit_is_refused(method: str, path: str, params: dict[str, Any], text: str) -> None:
    async def test(api: LabClient) -> None:
        name = {"name": "mine"} if method == "POST" and "/test" not in path else {}
        with pytest.raises(Refused, match=text):
            await api.call(method, f"{N}{path}", {**name, **params})

    run(test)


def test_a_secret_without_a_value_is_kept() -> None:
    async def test(api: LabClient) -> None:
        path = f"{N}/endpoints/webhook"
        await api.post(path, name="mine", **ENDPOINTS["webhook"])
        await api.put(f"{path}/mine", secret=["name=token", "name=other,value=YQ=="])
        assert (await api.get(f"{path}/mine"))["secret"] == ["name=token", "name=other"]
        with pytest.raises(Refused, match="400 secret 'new' not known"):
            await api.put(f"{path}/mine", secret=["name=new"])
        assert "czNjcmV0" in json.dumps(api.world.store.get("notification_secrets", "mine"))

    run(test)


@asynccontextmanager
async def server(received: list[tuple[str, dict[str, str], str]], status: int) -> AsyncIterator[str]:
    async def handle(request: web.Request) -> web.Response:
        received.append((request.path, dict(request.headers), await request.text()))
        return web.Response(status=status)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


def test_a_test_message_really_reaches_a_server_on_this_machine() -> None:
    async def test(api: LabClient) -> None:
        received: list[tuple[str, dict[str, str], str]] = []
        async with server(received, 200) as url:
            await api.post(f"{N}/endpoints/gotify", name="push", server=url, token="s3cret")
            await api.post(f"{N}/targets/push/test")
            hook = {**ENDPOINTS["webhook"], "url": f"{url}/{{{{ severity }}}}", "method": "put"}
            await api.post(f"{N}/endpoints/webhook", name="hook", **hook)
            await api.post(f"{N}/targets/hook/test")
            await api.post(f"{N}/targets/mail-to-root/test")
        (path, headers, body), (hook_path, hook_headers, hook_body) = received
        assert (path, headers["X-Gotify-Key"], json.loads(body)["priority"]) == ("/message", "s3cret", 1)
        assert (hook_path, hook_headers["Content-Type"]) == ("/info", "text/plain")
        assert "test of the notification target 'hook'" in hook_body
        targets = [sent["target"] for sent in api.world.store.items("outbox").values()]
        assert targets == ["push", "hook", "mail-to-root"]
        async with server(received, 403) as url:
            await api.put(f"{N}/endpoints/gotify/push", server=url)
            with pytest.raises(
                Refused, match=r"500 Could not test target: could not notify via endpoint\(s\): p"
            ):
                await api.post(f"{N}/targets/push/test")
        with pytest.raises(Refused, match=r"500 Could not test target: .*Connection refused"):
            await api.post(f"{N}/targets/push/test")

    run(test)


def test_a_fenced_node_is_told_to_whom_a_matcher_says() -> None:
    async def test(api: LabClient) -> None:
        received: list[tuple[str, dict[str, str], str]] = []
        await api.post("/nodes/pve2/qemu", vmid=100)
        await api.post("/nodes/pve2/qemu", vmid=101)
        for vmid in (100, 101):
            await api.post("/cluster/ha/resources", sid=f"vm:{vmid}")
        async with server(received, 200) as url:
            await api.post(
                f"{N}/endpoints/webhook", name="hook", method="post", url=f"{url}/{{{{ fields.type }}}}"
            )
            await api.post(f"{N}/endpoints/webhook", name="off", method="post", url=url, disable=1)
            match = {"match-field": ["exact:type=fencing,replication"], "match-severity": ["error"]}
            await api.post(f"{N}/matchers", name="mine", target=["hook", "off"], **match)
            api.running.add_fault("node-down", node="pve2")
            await settled(api)
        assert [path for path, _, _ in received] == ["/fencing"]
        sent = list(api.world.store.items("outbox").values())
        assert sorted(one["target"] for one in sent) == ["hook", "mail-to-root"]
        assert sent[0]["title"] == "Successfully fenced node 'pve2'"
        assert not api.world.store.items("notices")

    run(test, nodes=("pve1", "pve2", "pve3"))


async def settled(api: LabClient) -> None:
    """Wait until no notice waits to be sent."""
    await api.get("/version")
    for _ in range(1000):
        if not api.world.store.items("notices"):
            return
        await asyncio.sleep(0.01)


def test_a_backup_tells_how_it_ended() -> None:
    async def test(api: LabClient) -> None:
        await api.post("/nodes/pve1/qemu", vmid=100, scsi0="local-lvm:1")
        await api.done(await api.post("/nodes/pve1/vzdump", vmid=100, storage="local"))
        await api.done(await api.post("/nodes/pve1/vzdump", vmid=999, storage="local"))
        await settled(api)
        sent = [(one["severity"], one["title"]) for one in api.world.store.items("outbox").values()]
        assert sent == [
            ("info", "vzdump backup status (pve1): backup successful"),
            ("error", "vzdump backup status (pve1): backup failed"),
        ]

    run(test)


NOTICE = {
    "severity": "warning",
    "fields": {"type": "vzdump", "hostname": "pve1"},
    # A Monday, 04:07 UTC.
    "time": 1794802050,
}


@pytest.mark.parametrize(
    ("matcher", "fits"),
    [
        ({}, True),
        ({"match-severity": ["warning,error"]}, True),
        ({"match-severity": ["info"]}, False),
        ({"match-severity": ["info"], "invert-match": 1}, True),
        ({"match-field": ["exact:hostname=pve1,pve2"]}, True),
        ({"match-field": ["regex:hostname=^pve[23]$"]}, False),
        ({"match-field": ["exact:job-id=1"]}, False),
        ({"match-severity": ["info"], "match-field": ["exact:type=vzdump"]}, False),
        ({"match-severity": ["info"], "match-field": ["exact:type=vzdump"], "mode": "any"}, True),
        ({"match-calendar": ["mon..fri 4-5"]}, True),
        ({"match-calendar": ["4:08-5:00"]}, False),
        ({"match-calendar": ["sat,sun 0:00-23:59"]}, False),
    ],
)
def test_matchers_choose_by_severity_field_and_time(matcher: dict[str, Any], fits: bool) -> None:
    assert is_match(matcher, NOTICE) is fits


def test_who_may_not_is_refused() -> None:
    async def test(api: LabClient) -> None:
        await api.post("/access/users", userid="bob@pve", password="secret123")
        bob = await api.with_password("bob@pve", "secret123")
        for path in ("targets", "matchers", "endpoints/sendmail", "matcher-field-values"):
            with pytest.raises(Refused, match="403 Permission check failed"):
                await bob.get(f"{N}/{path}")
        await api.put("/access/acl", path="/mapping/notifications", roles="PVEMappingUser", users="bob@pve")
        assert len(await bob.get(f"{N}/targets")) == 1
        with pytest.raises(Refused, match="403"):
            await bob.post(f"{N}/matchers", name="mine")

    run(test)
