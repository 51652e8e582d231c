"""Users, tokens, groups, roles and passwords over the API."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused, lab_client

USERS = "/access/users"
ROLES = "/access/roles"


@contextlib.asynccontextmanager
async def with_lab(**options: Any) -> AsyncIterator[LabClient]:
    async with lab_client(**options) as api:
        yield api


async def refusal(call: Awaitable[Any]) -> Refused:
    with pytest.raises(Refused) as caught:
        await call
    return caught.value


async def root_ticket(api: LabClient) -> LabClient:
    """Return a client that is root@pam itself, not a token of it."""
    return await api.with_password(api.running.username, api.running.password)


async def test_a_user_reads_back_what_was_set_and_nothing_else() -> None:
    async with with_lab() as api:
        assert await api.post(USERS, userid="bob@pve") is None
        assert await api.get(f"{USERS}/bob@pve") == {"enable": 1, "expire": 0, "groups": [], "tokens": None}
        await api.post("/access/groups", groupid="ops")
        await api.put(f"{USERS}/bob@pve", enable=0, expire=1700000000, firstname="Bob", groups="ops")
        assert await api.get(f"{USERS}/bob@pve") == {
            "enable": 0,
            "expire": 1700000000,
            "firstname": "Bob",
            "groups": ["ops"],
            "tokens": None,
        }
        await api.put(f"{USERS}/bob@pve", firstname="", comment="a comment")
        user = await api.get(f"{USERS}/bob@pve")
        # Proxmox shows the empty e-mail address that stands before a comment in its file.
        assert ("firstname" in user, user["comment"], user["email"]) == (False, "a comment", "")


async def test_lists_of_users_have_groups_and_tokens_only_in_full() -> None:
    async with with_lab() as api:
        await api.post("/access/groups", groupid="b")
        await api.post("/access/groups", groupid="a")
        await api.post(USERS, userid="bob@pve", groups="b,a", comment="x", email="bob@example.com")
        await api.post(USERS, userid="off@pve", enable=0)
        await api.post(f"{USERS}/bob@pve/token/t1", comment="first")
        short = {row["userid"]: row for row in await api.get(USERS)}
        assert list(short) == ["bob@pve", "off@pve", "root@pam"]
        assert short["off@pve"] == {"userid": "off@pve", "enable": 0, "expire": 0, "realm-type": "pve"}
        full = {row["userid"]: row for row in await api.get(USERS, full=1)}
        assert full["bob@pve"]["groups"] == "a,b"
        assert full["bob@pve"]["tokens"] == [{"tokenid": "t1", "privsep": 1, "expire": 0, "comment": "first"}]
        assert (full["off@pve"]["groups"], full["off@pve"]["tokens"]) == ("", None)
        assert [row["userid"] for row in await api.get(USERS, enabled=0)] == ["off@pve"]


async def test_refusals_of_user_changes_say_what_failed_first() -> None:
    async with with_lab() as api:
        await api.post(USERS, userid="bob@pve")
        again = await refusal(api.post(USERS, userid="bob@pve"))
        assert str(again) == "500 create user failed: user 'bob@pve' already exists"
        group = await refusal(api.put(f"{USERS}/bob@pve", groups="nope"))
        assert group.reason == "update user failed: no such group 'nope'"
        missing = await refusal(api.get(f"{USERS}/eve@pve"))
        assert (missing.status, missing.reason) == (500, "no such user ('eve@pve')")
        nowhere = await refusal(api.post(USERS, userid="a@ldap1", password="secret123"))
        assert nowhere.reason == "create user failed: auth domain 'ldap1' does not exist"
        system = await refusal(api.post(USERS, userid="linux@pam", password="secret123"))
        assert system.reason == "create user failed: change password failed: user 'linux' does not exist"
        assert [row["userid"] for row in await api.get(USERS)] == ["bob@pve", "root@pam"]
        name = await refusal(api.get(f"{USERS}/nobody"))
        assert name.reason == "value 'nobody' does not look like a valid user name"


async def test_removing_a_user_takes_tokens_memberships_and_acl_entries_along() -> None:
    async with with_lab() as api:
        await api.post("/access/groups", groupid="ops")
        await api.post(USERS, userid="bob@pve", groups="ops", password="secret123")
        token = await api.post(f"{USERS}/bob@pve/token/t1", privsep=0)
        for kind, name in (("users", "bob@pve"), ("tokens", "bob@pve!t1"), ("groups", "ops")):
            await api.put("/access/acl", path="/vms", roles="PVEVMUser", **{kind: name})
        await api.delete(f"{USERS}/bob@pve")
        assert await api.get("/access/acl") == [
            {"path": "/vms", "type": "group", "ugid": "ops", "roleid": "PVEVMUser", "propagate": 1}
        ]
        assert (await api.get("/access/groups/ops"))["members"] == []
        reply = await api.with_token(f"bob@pve!t1={token['value']}").raw("GET", "/version")
        assert reply.status == 401
        assert (await refusal(api.delete(f"{USERS}/bob@pve"))).reason == "no such user ('bob@pve')"
        # To root@pam itself no permission is checked, and that is where a missing user would be noticed.
        assert await (await root_ticket(api)).delete(f"{USERS}/bob@pve") is None


async def test_a_token_tells_its_secret_once_and_works_until_it_expires() -> None:
    async with with_lab() as api:
        await api.post(USERS, userid="bob@pve")
        expiry = int(api.world.clock.now()) + 60
        made = await api.post(f"{USERS}/bob@pve/token/ci", expire=expiry, privsep=0, comment="for CI")
        assert made["full-tokenid"] == "bob@pve!ci"
        assert made["info"] == {"expire": expiry, "privsep": 0, "comment": "for CI"}
        info = await api.get(f"{USERS}/bob@pve/token/ci")
        assert info == {"expire": expiry, "privsep": 0, "comment": "for CI"}
        assert made["value"] not in str(await api.get(f"{USERS}/bob@pve/token"))
        bob = api.with_token(f"bob@pve!ci={made['value']}")
        assert "version" in await bob.get("/version")
        await api.pass_time(61)
        assert (await bob.raw("GET", "/version")).status == 401


async def test_a_regenerated_token_has_a_new_secret_and_the_old_one_is_dead() -> None:
    async with with_lab() as api:
        await api.post(USERS, userid="bob@pve")
        made = await api.post(f"{USERS}/bob@pve/token/ci", comment="x")
        changed = await api.put(f"{USERS}/bob@pve/token/ci", privsep=0, delete="comment")
        assert changed == {"expire": 0, "privsep": 0}
        renewed = await api.put(f"{USERS}/bob@pve/token/ci", regenerate=1)
        assert renewed["full-tokenid"] == "bob@pve!ci"
        assert (await api.with_token(f"bob@pve!ci={made['value']}").raw("GET", "/version")).status == 401
        assert "version" in await api.with_token(f"bob@pve!ci={renewed['value']}").get("/version")
        await api.delete(f"{USERS}/bob@pve/token/ci")
        assert await api.get(f"{USERS}/bob@pve/token") == []


async def test_refusals_of_tokens_are_proxmoxs() -> None:
    async with with_lab() as api:
        await api.post(USERS, userid="bob@pve")
        await api.post(f"{USERS}/bob@pve/token/ci")
        again = await refusal(api.post(f"{USERS}/bob@pve/token/ci"))
        assert (again.status, again.errors) == (400, {"tokenid": "Token already exists."})
        missing = await refusal(api.get(f"{USERS}/bob@pve/token/no"))
        assert missing.reason == "no such token 'no' for user 'bob@pve'"
        wrong = await refusal(api.put(f"{USERS}/bob@pve/token/ci", delete="expire"))
        assert (wrong.status, wrong.reason) == (
            500,
            "updating token info failed: 400 Parameter verification failed.",
        )
        assert b"delete: unknown option 'expire'" in wrong.reply.body


async def test_groups_list_their_members_and_go_with_their_memberships() -> None:
    async with with_lab() as api:
        await api.post("/access/groups", groupid="ops", comment="operators")
        await api.post(USERS, userid="b@pve", groups="ops")
        await api.post(USERS, userid="a@pve")
        await api.put(f"{USERS}/a@pve", groups="ops", append=1)
        assert await api.get("/access/groups") == [
            {"groupid": "ops", "comment": "operators", "users": "a@pve,b@pve"}
        ]
        await api.put("/access/groups/ops", comment="")
        assert await api.get("/access/groups/ops") == {"members": ["a@pve", "b@pve"]}
        again = await refusal(api.post("/access/groups", groupid="ops"))
        assert again.reason == "create group failed: group 'ops' already exists"
        await api.delete("/access/groups/ops")
        assert (await api.get(f"{USERS}/a@pve"))["groups"] == []
        missing = await refusal(api.get("/access/groups/ops"))
        assert missing.reason == "group 'ops' does not exist"


async def test_roles_have_known_privileges_and_shipped_ones_stay_as_they_are() -> None:
    async with with_lab() as api:
        await api.post(ROLES, roleid="Viewer", privs="VM.Audit,Sys.Audit")
        assert await api.get(f"{ROLES}/Viewer") == {"Sys.Audit": 1, "VM.Audit": 1}
        await api.put(f"{ROLES}/Viewer", privs="VM.Console", append=1)
        listed = {row["roleid"]: row for row in await api.get(ROLES)}
        assert listed["Viewer"] == {
            "roleid": "Viewer",
            "privs": "Sys.Audit,VM.Audit,VM.Console",
            "special": 0,
        }
        assert listed["NoAccess"] == {"roleid": "NoAccess", "privs": "", "special": 1}
        await api.put(f"{ROLES}/Viewer", privs="VM.Audit")
        assert await api.get(f"{ROLES}/Viewer") == {"VM.Audit": 1}
        wrong = await refusal(api.post(ROLES, roleid="X", privs="VM.Fly"))
        assert wrong.errors == {"privs": "invalid format - invalid privilege 'VM.Fly'\n"}
        named = await refusal(api.post(ROLES, roleid="pveMine"))
        assert "namespace" in named.errors["roleid"]
        for verb, done in ((api.put, "modified"), (api.delete, "deleted")):
            shipped = await refusal(verb(f"{ROLES}/PVEAdmin"))
            assert shipped.reason == f"auto-generated role 'PVEAdmin' cannot be {done}"
        assert (await refusal(api.get(f"{ROLES}/nope"))).reason == "role 'nope' does not exist"


async def test_a_removed_role_leaves_no_acl_entry() -> None:
    async with with_lab() as api:
        await api.post(ROLES, roleid="Viewer", privs="VM.Audit")
        await api.post(USERS, userid="bob@pve")
        await api.put("/access/acl", path="/", roles="Viewer,PVEAuditor", users="bob@pve")
        await api.delete(f"{ROLES}/Viewer")
        assert [row["roleid"] for row in await api.get("/access/acl")] == ["PVEAuditor"]


async def test_users_change_their_own_password_with_the_old_one() -> None:
    async with with_lab() as api:
        await api.post(USERS, userid="bob@pve", password="first-secret")
        bob = await api.with_password("bob@pve", "first-secret")
        change = {"userid": "bob@pve", "password": "second-secret"}
        bare = await refusal(bob.put("/access/password", **change))
        assert bare.errors == {"confirmation-password": "password is required to modify user"}
        wrong = await refusal(bob.put("/access/password", **change, confirmation__password="guessed"))
        assert wrong.reason == "invalid credentials"
        await bob.put("/access/password", **change, confirmation__password="first-secret")
        await api.with_password("bob@pve", "second-secret")
        assert (await refusal(api.with_password("bob@pve", "first-secret"))).status == 401
        token = await refusal(api.put("/access/password", **change))
        assert token.status == 403
        root = await refusal(
            bob.put("/access/password", userid="root@pam", password="hijacked1", confirmation__password="x")
        )
        assert str(root) == "403 Permission check failed"


async def test_the_password_of_root_is_the_one_that_was_set_last() -> None:
    async with with_lab() as api:
        root = await root_ticket(api)
        await root.put("/access/password", userid="root@pam", password="another-one")
        await api.with_password("root@pam", "another-one")
        assert (api.world.store.get("secrets", "root") or {})["password"] == "another-one"
        missing = await refusal(root.put("/access/password", userid="no@pve", password="whatever1"))
        assert missing.reason == "no such user ('no@pve')"


async def test_the_ticket_of_root_opens_the_door_for_others_and_nobody_elses_does() -> None:
    async with with_lab() as api:
        await api.post(USERS, userid="bob@pve", password="first-secret")
        nobody = api.with_headers({})
        root = await nobody.post("/access/ticket", username="root@pam", password=api.running.password)
        bob = await nobody.post("/access/ticket", username="bob@pve", password=root["ticket"])
        assert bob["ticket"].startswith("PVE:bob@pve:")
        refused = await refusal(nobody.post("/access/ticket", username="root@pam", password=bob["ticket"]))
        assert str(refused) == "401 authentication failure"


async def test_asking_about_a_privilege_gives_no_ticket() -> None:
    async with with_lab() as api:
        await api.post(USERS, userid="bob@pve", password="first-secret")
        await api.put("/access/acl", path="/vms", roles="PVEVMUser", users="bob@pve")
        ask = {"username": "bob", "realm": "pve", "password": "first-secret", "path": "/vms/100/"}
        answer = await api.with_headers({}).post("/access/ticket", **ask, privs="VM.Console")
        assert set(answer) == {"username", "cap"}
        refused = await refusal(api.with_headers({}).post("/access/ticket", **ask, privs="VM.Allocate"))
        assert refused.status == 401


async def test_nobody_has_a_second_factor() -> None:
    async with with_lab() as api:
        assert await api.get("/access/tfa") == []
        assert await api.get("/access/tfa/root@pam") == []
        assert await api.get(f"{USERS}/root@pam/tfa", multiple=1) == {"user": []}
        missing = await refusal(api.get("/access/tfa/root@pam/totp:1"))
        assert (missing.status, missing.reason) == (404, "No such tfa entry 'totp:1'")
        assert {"subdir": "users"} in await api.get("/access")
