"""Users, tokens and realms: secrets stay where they belong, and what cannot be seen is not taken for gone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.provider_bench import Failed, bench

from stackyard import lab
from stackyard.clients import proxmox
from stackyard.provider.values import UNKNOWN

USER = "proxmox_virtual_environment_user"
TOKEN = "proxmox_user_token"
LDAP = "proxmox_realm_ldap"
OPENID = "proxmox_realm_openid"
ACL = "proxmox_acl"


def login(running: lab.Running, user: str, password: str) -> proxmox.Connection:
    return proxmox.Connection(
        endpoint=running.url,
        credentials=proxmox.Login(username=user, password=password),
        trust=proxmox.Trust(fingerprint=running.fingerprint),
    )


async def log_in(running: lab.Running, user: str, password: str) -> bool:
    try:
        async with proxmox.Client(login(running, user, password)) as client:
            await client.get("/version")
    except proxmox.LoginRefusedError:
        return False
    return True


async def test_a_user_gets_the_password_of_the_configuration_and_then_another() -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running, credentials=_root(running)) as it:
        await it.apply(USER, user_id="ann@pve", password="first-password")
        assert await log_in(running, "ann@pve", "first-password")
        await it.apply(USER, user_id="ann@pve", password="second-password")
        assert await log_in(running, "ann@pve", "second-password")


def _root(running: lab.Running) -> proxmox.Login:
    return proxmox.Login(username=running.username, password=running.password)


async def test_a_user_leaves_its_last_group() -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
        await it.session.client.post("/access/groups", {"groupid": "team"})
        await it.apply(USER, user_id="ann@pve", groups=["team"])
        await it.apply(USER, user_id="ann@pve")
        assert (await it.session.client.get("/access/users/ann@pve"))["groups"] == []
        assert await it.is_settled(USER, user_id="ann@pve")


async def test_an_end_in_another_time_zone_is_the_same_end() -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
        made = await it.apply(USER, user_id="ann@pve", expiration_date="2034-01-01T23:00:00+01:00")
        assert made["expiration_date"] == "2034-01-01T23:00:00+01:00"
        assert await it.is_settled(USER, user_id="ann@pve", expiration_date="2034-01-01T22:00:00Z")


async def test_the_secret_of_a_token_is_kept_in_the_state_and_the_user_is_told() -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
        await it.session.client.post("/access/users", {"userid": "ann@pve"})
        made = await it.apply(TOKEN, user_id="ann@pve", token_name="one")
        assert "in the state" in it.last.problems[0].summary
        token = proxmox.Token(text=f"{made['id']}={made['value']}")
        async with bench(running, credentials=token) as other:
            assert other.session.is_configured


async def test_a_token_whose_secret_was_lost_on_the_way_is_made_again() -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
        await it.session.client.post("/access/users", {"userid": "ann@pve"})
        running.add_fault(
            "drop", when="after", method="POST", path="/access/users/ann@pve/token/one", times=1
        )
        made = await it.apply(TOKEN, user_id="ann@pve", token_name="one")
        async with bench(running, credentials=proxmox.Token(text=f"{made['id']}={made['value']}")) as other:
            assert other.session.is_configured


async def test_no_password_gets_into_the_journal(tmp_path: Path) -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running, journal=tmp_path) as it:
        running.add_fault("drop", when="after", method="POST", path="/access/domains")
        running.add_fault("drop", when="after", method="POST", path="/access/users")
        realm = {"realm": "corp", "server1": "ldap.example.com", "base_dn": "dc=example"}
        await it.apply(LDAP, **realm, bind_dn="cn=a", bind_password="canary-0815")
        await it.apply(USER, user_id="ann@pve", password="canary-0815")
        written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert b"corp" in written
        assert b"canary" not in written


async def test_a_write_only_key_is_sent_and_is_in_no_plan_or_state() -> None:
    config = {"realm": "id", "issuer_url": "https://id.example.com", "client_id": "lab"}
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
        planned = it.plan(OPENID, **config, client_key_wo="canary-0815", client_key_wo_version=1)
        assert planned.state is not None
        assert planned.state["client_key_wo"] is None
        made = await it.apply(OPENID, **config, client_key_wo="canary-0815", client_key_wo_version=1)
        assert (made["client_key_wo"], made["client_key_wo_version"]) == (None, 1)
        found = await it.session.client.get("/access/domains/id")
        assert found["client-key"] == "canary-0815"
        await it.apply(OPENID, **config, client_key_wo="canary-4711", client_key_wo_version=2)
        found = await it.session.client.get("/access/domains/id")
        assert found["client-key"] == "canary-4711"


async def test_what_cannot_be_seen_is_not_gone() -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
        await it.apply(USER, user_id="ann@pve")
        await it.apply(ACL, path="/vms", user_id="ann@pve", role_id="PVEAuditor")
        await it.session.client.post("/access/users", {"userid": "weak@pve", "password": "weak-password"})
        weak = proxmox.Login(username="weak@pve", password="weak-password")
        async with bench(running, credentials=weak) as other:
            other.states = dict(it.states)
            with pytest.raises(Failed, match="Permission check failed"):
                await other.refresh(USER)
            with pytest.raises(Failed, match="may not see the access control list of /vms"):
                await other.refresh(ACL)


@pytest.mark.parametrize(
    ("type_name", "config", "said"),
    [
        (ACL, {"path": "/", "role_id": "NoAccess"}, "One of group_id, token_id, user_id must be set"),
        (ACL, {"path": "/", "role_id": "NoAccess", "user_id": "a@pve", "group_id": "b"}, "Only one of"),
        (USER, {"user_id": "a@pve", "expiration_date": "tomorrow"}, "must be a moment"),
        (TOKEN, {"user_id": "a@pve", "token_name": "1"}, "must be letters"),
        (LDAP, {"realm": "x", "server1": "a", "base_dn": "b"}, "must be 2 to 32 letters"),
        (LDAP, {"realm": "xy", "server1": "a", "base_dn": "b", "bind_password": "c"}, "needs `bind_dn`"),
        (LDAP, {"realm": "xy", "server1": "a", "base_dn": "b", "mode": "ldap", "secure": True}, "exclude"),
        (OPENID, {"realm": "xy", "issuer_url": "a", "client_id": "b", "client_key_wo_version": 1}, "needs"),
    ],
)
async def test_what_cannot_be_is_refused_by_name(
    type_name: str, config: dict[str, object], said: str
) -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
        with pytest.raises(Failed, match=said):
            it.plan(type_name, **config)


async def test_an_owner_that_is_not_known_yet_is_no_error() -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
        planned = it.plan(ACL, path="/vms", token_id=UNKNOWN, role_id="PVEAuditor")
        assert planned.replace == []
