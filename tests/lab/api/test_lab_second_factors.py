"""Second factors: one-time passwords that are really checked, recovery keys, console tickets."""

from __future__ import annotations

import contextlib
import json
import urllib.parse
from collections.abc import AsyncIterator

import proxmoxer
import pytest
from tests.support.lab import LabClient, Refused, lab_client, proxmoxer_client

from pvelab.world.access.second_factors import Totp
from stackyard import lab

URI = "otpauth://totp/lab:bob?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&digits=6&period=30&issuer=lab"
TOTP = Totp.parse(URI)


@contextlib.asynccontextmanager
async def run() -> AsyncIterator[tuple[LabClient, LabClient]]:
    """Run a test with a client of root and one of bob, both with tickets."""

    async with lab_client() as api:
        # A password is good for half a minute, and a busy machine may take longer.
        api.world.clock.hold()
        await api.post("/access/users", userid="bob@pve", password="secret123")
        root = await api.with_password("root@pam", api.running.password)
        yield (root, await api.with_password("bob@pve", "secret123"))


def now(api: LabClient, *, later_s: int = 0) -> str:
    """Return the password of this moment."""
    return TOTP.at(api.world.clock.now() + later_s)


async def add_totp(bob: LabClient) -> str:
    given = {"type": "totp", "description": "phone", "totp": URI, "password": "secret123"}
    added = await bob.post("/access/tfa/bob@pve", value=now(bob), **given)
    return str(added["id"])


async def login(api: LabClient, **params: str) -> dict[str, object]:
    found = await api.with_headers({}).post("/access/ticket", username="bob@pve", **params)
    return dict(found)


async def test_a_login_needs_the_one_time_password_once_there_is_one() -> None:
    async with run() as (root, bob):
        ident = await add_totp(bob)
        shown = await bob.get(f"/access/tfa/bob@pve/{ident}")
        assert (shown["type"], shown["description"]) == ("totp", "phone")
        assert "uri" not in shown
        assert (await root.get("/access/users/bob@pve"))["keys"] == "x"
        assert await root.get("/access/users/bob@pve/tfa", multiple=1) == {"user": ["totp"]}
        first = await login(root, password="secret123")
        assert first["NeedTFA"] == 1
        assert "cap" not in first
        ticket = str(first["ticket"])
        assert ticket.startswith("PVE:!tfa!")
        challenge = urllib.parse.unquote(ticket.split(":")[1].removeprefix("!tfa!"))
        assert json.loads(challenge) == {"totp": True}
        with pytest.raises(Refused, match="401"):
            await root.with_headers({"Cookie": f"PVEAuthCookie={ticket}"}).get("/version")
        answer = {"tfa-challenge": ticket, "password": f"totp:{now(root)}"}
        second = await login(root, **answer)
        assert "NeedTFA" not in second
        assert "cap" in second
        # It is good for one login only.
        with pytest.raises(Refused, match="401 authentication failure"):
            await login(root, **answer)
        bob_again = root.with_headers({"Cookie": f"PVEAuthCookie={second['ticket']}"})
        assert (await bob_again.get("/version"))["version"]
        root.world.clock.advance(60)
        at_once = await login(root, password="secret123", otp=f"totp:{now(root)}")
        assert "NeedTFA" not in at_once


def test_proxmoxer_logs_in_with_a_one_time_password() -> None:
    with lab.running() as running:
        running.on_loop(running.world.clock.hold)
        root = proxmoxer_client(running)
        root.access.users.post(userid="bob@pve", password="secret123")
        moment = running.on_loop(running.world.clock.now)
        root.access.tfa("bob@pve").post(type="totp", description="x", totp=URI, value=TOTP.at(moment))
        given = {"user": "bob@pve", "password": "secret123", "verify_ssl": False}
        password = TOTP.at(running.on_loop(running.world.clock.now))
        bob = proxmoxer.ProxmoxAPI("127.0.0.1", port=running.port, otp=password, timeout=60, **given)
        assert bob.version.get()["release"]


async def test_recovery_keys_are_good_once() -> None:
    async with run() as (root, bob):
        added = await bob.post("/access/tfa/bob@pve", type="recovery", password="secret123")
        assert added["id"] == "recovery"
        assert len(added["recovery"]) == 10
        key = added["recovery"][3]
        ticket = str((await login(root, password="secret123"))["ticket"])
        await login(root, password=f"recovery:{key}", **{"tfa-challenge": ticket})
        with pytest.raises(Refused, match="401"):
            await login(root, password=f"recovery:{key}", **{"tfa-challenge": ticket})
        with pytest.raises(Refused, match="user already has recovery keys"):
            await bob.post("/access/tfa/bob@pve", type="recovery", password="secret123")
        kept = json.dumps(root.world.store.get("tfa", "bob@pve"))
        assert key not in kept


async def test_too_many_wrong_answers_lock_a_user_out_until_an_admin_helps() -> None:
    async with run() as (root, bob):
        await add_totp(bob)
        ticket = str((await login(root, password="secret123"))["ticket"])
        for _ in range(8):
            with pytest.raises(Refused, match="401 authentication failure"):
                await login(root, password="totp:000000", **{"tfa-challenge": ticket})
        root.world.clock.advance(60)
        with pytest.raises(Refused, match="401"):
            await login(root, password=f"totp:{now(root)}", **{"tfa-challenge": ticket})
        assert (await root.get("/access/tfa"))[0]["totp-locked"] == 1
        assert await root.put("/access/users/bob@pve/unlock-tfa") == 1
        assert await root.put("/access/users/bob@pve/unlock-tfa") == 0
        await login(root, password=f"totp:{now(root)}", **{"tfa-challenge": ticket})


async def test_a_second_factor_is_switched_off_and_removed() -> None:
    async with run() as (root, bob):
        ident = await add_totp(bob)
        await bob.put(f"/access/tfa/bob@pve/{ident}", enable=0, description="old", password="secret123")
        (entry,) = await bob.get("/access/tfa/bob@pve")
        assert (entry["enable"], entry["description"]) == (0, "old")
        assert "NeedTFA" not in await login(root, password="secret123")
        await root.delete(f"/access/tfa/bob@pve/{ident}")
        assert await root.get("/access/tfa") == []
        assert "keys" not in await root.get("/access/users/bob@pve")
        with pytest.raises(Refused, match="404 No such tfa entry"):
            await root.get(f"/access/tfa/bob@pve/{ident}")


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"type": "totp", "description": "x", "totp": URI}, "requires both 'totp' and 'value' parameters"),
        ({"type": "totp", "totp": URI, "value": "1"}, "'description' is required for new entries"),
        (
            {"type": "totp", "description": "x", "totp": URI, "value": "000000"},
            "failed to verify TOTP challenge",
        ),
        ({"type": "totp", "description": "x", "totp": "http://x", "value": "1"}, "not an otpauth uri"),
        (
            {"type": "totp", "description": "x", "totp": "otpauth://totp/a?secret=1", "value": "1"},
            "failed to decode otp secret",
        ),
        ({"type": "recovery", "value": "x"}, "does not allow additional parameters"),
        ({"type": "yubico", "value": "x"}, "no yubico otp configuration available for realm pve"),
        ({"type": "rune"}, "400 Parameter verification failed"),
        ({"type": "recovery", "password": "wrong-one"}, "500 invalid credentials"),
    ],
)
async def test_wrong_second_factors_are_refused(params: dict[str, str], text: str) -> None:
    async with run() as (_root, bob):
        with pytest.raises(Refused, match=text):
            await bob.post("/access/tfa/bob@pve", **{"password": "secret123", **params})
        assert await bob.get("/access/tfa/bob@pve") == []


async def test_nobody_changes_the_second_factors_of_others_or_with_a_token() -> None:
    async with run() as (root, bob):
        with pytest.raises(Refused, match=r"400 .*password is required to modify user"):
            await bob.post("/access/tfa/bob@pve", type="recovery")
        with pytest.raises(Refused, match="403"):
            await bob.post("/access/tfa/root@pam", type="recovery", password="secret123")
        token = root.with_token(root.running.api_token)
        with pytest.raises(Refused, match="403"):
            await token.post("/access/tfa/bob@pve", type="recovery")
