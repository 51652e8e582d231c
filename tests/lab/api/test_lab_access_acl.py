"""ACLs and what follows from them: who may do what, who may let others, and who sees what."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused, lab_client

ACL = "/access/acl"


@contextlib.asynccontextmanager
async def with_lab(**options: Any) -> AsyncIterator[LabClient]:
    async with lab_client(**options) as api:
        yield api


async def refusal(call: Awaitable[Any]) -> Refused:
    with pytest.raises(Refused) as caught:
        await call
    return caught.value


async def user(api: LabClient, name: str, *grants: tuple[str, str], **params: Any) -> LabClient:
    """Add a user with roles on paths and return a client with its ticket."""
    userid = f"{name}@pve"
    await api.post("/access/users", userid=userid, password="secret123", **params)
    for path, role in grants:
        await api.put(ACL, path=path, roles=role, users=userid)
    return await api.with_password(userid, "secret123")


async def test_entries_read_back_by_path_and_go_one_role_at_a_time() -> None:
    async with with_lab() as api:
        await api.post("/access/groups", groupid="ops")
        await api.post("/access/users", userid="bob@pve")
        await api.post("/access/users/bob@pve/token/t1")
        await api.put(ACL, path="//vms/100/", roles="PVEVMUser,PVEAuditor", users="bob@pve", propagate=0)
        await api.put(ACL, path="/", roles="PVEAuditor", groups="ops", tokens="bob@pve!t1")
        shown = [
            (row["path"], row["type"], row["ugid"], row["roleid"], row["propagate"])
            for row in await api.get(ACL)
        ]
        assert shown == [
            ("/", "group", "ops", "PVEAuditor", 1),
            ("/", "token", "bob@pve!t1", "PVEAuditor", 1),
            ("/vms/100", "user", "bob@pve", "PVEVMUser", 0),
            ("/vms/100", "user", "bob@pve", "PVEAuditor", 0),
        ]
        await api.put(ACL, path="/vms/100", roles="PVEVMUser", users="bob@pve", delete=1)
        await api.put(ACL, path="/", roles="PVEAuditor", groups="ops", delete=1)
        assert [(row["path"], row["roleid"]) for row in await api.get(ACL)] == [
            ("/", "PVEAuditor"),
            ("/vms/100", "PVEAuditor"),
        ]


@pytest.mark.parametrize(
    ("params", "status", "text"),
    [
        ({"path": "/", "roles": "PVEAdmin"}, 400, "either 'users', 'groups' or 'tokens' is required."),
        ({"path": "/nowhere", "roles": "PVEAdmin", "users": "root@pam"}, 400, "invalid ACL path '/nowhere'"),
        ({"path": "/vms/1", "roles": "PVEAdmin", "users": "root@pam"}, 400, "invalid ACL path '/vms/1'"),
        ({"path": "/ü", "roles": "PVEAdmin", "users": "root@pam"}, 400, "invalid ACL path '/ü'"),
        ({"path": "/", "roles": "Nope", "users": "root@pam"}, 500, "role 'Nope' does not exist"),
        ({"path": "/", "roles": "PVEAdmin", "users": "no@pve"}, 500, "user 'no@pve' does not exist"),
        ({"path": "/", "roles": "PVEAdmin", "groups": "no"}, 500, "group 'no' does not exist"),
        ({"path": "/", "roles": "PVEAdmin", "tokens": "root@pam!no"}, 500, "no such token 'no' for user"),
    ],
)
async def test_entries_that_cannot_be_are_refused(params: dict[str, str], status: int, text: str) -> None:
    async with with_lab() as api:
        refused = await refusal(api.put(ACL, **params))
        assert refused.status == status
        assert text in (refused.reason if status == 500 else "".join(refused.errors.values()))
        assert status == 400 or refused.reason.startswith("ACL update failed: ")
        assert await api.get(ACL) == []


@pytest.mark.parametrize(
    "path",
    ["/pool/a/b/c", "/sdn/zones/z1/vmbr0/100", "/sdn/fabrics/f1", "/mapping/pci/gpu", "/access/realm/pve"],
)
async def test_every_path_of_the_access_tree_can_have_entries(path: str) -> None:
    async with with_lab() as api:
        await api.post("/access/users", userid="bob@pve")
        await api.put(ACL, path=path, roles="PVEAuditor", users="bob@pve")
        assert [row["path"] for row in await api.get(ACL)] == [path]


async def test_root_needs_no_entry_and_gets_none() -> None:
    async with with_lab() as api:
        await api.put(ACL, path="/", roles="PVEAuditor", users="root@pam")
        assert await api.get(ACL) == []


async def test_who_owns_an_object_shares_no_more_than_they_have() -> None:
    async with with_lab() as api:
        await api.post("/access/users", userid="friend@pve")
        await api.post("/access/roles", roleid="Owner", privs="VM.Allocate,VM.Audit")
        owner = await user(api, "owner", ("/vms/100", "Owner"))
        share = {"path": "/vms/100", "users": "friend@pve"}
        await owner.put(ACL, **share, roles="Owner")
        beyond = await refusal(owner.put(ACL, **share, roles="PVEVMUser"))
        assert (beyond.status, beyond.reason) == (
            500,
            "ACL update failed: 400 Parameter verification failed.",
        )
        assert b"requires 'Permissions.Modify' or superset of privileges." in beyond.reply.body
        none = await refusal(owner.put(ACL, **share, roles="NoAccess"))
        assert b"Cannot add role 'NoAccess' - requires 'Permissions.Modify'" in none.reply.body
        elsewhere = await refusal(owner.put(ACL, path="/vms/200", users="friend@pve", roles="Owner"))
        assert str(elsewhere) == "403 Permission check failed (/vms/200, Permissions.Modify|VM.Allocate)"
        assert {row["ugid"] for row in await owner.get(ACL)} == {"owner@pve", "friend@pve"}


async def test_what_is_inherited_without_propagation_cannot_be_shared_with_it() -> None:
    async with with_lab() as api:
        await api.post("/access/users", userid="friend@pve")
        await api.post("/access/roles", roleid="Owner", privs="VM.Allocate")
        owner = await user(api, "owner")
        await api.put(ACL, path="/vms/100", roles="Owner", users="owner@pve", propagate=0)
        share = {"path": "/vms/100", "users": "friend@pve", "roles": "Owner"}
        refused = await refusal(owner.put(ACL, **share))
        assert b"Cannot add role 'Owner' with propagation" in refused.reply.body
        await owner.put(ACL, **share, propagate=0)


async def test_helpers_manage_the_users_of_their_realm_and_group_alone() -> None:
    async with with_lab() as api:
        for group in ("ours", "theirs"):
            await api.post("/access/groups", groupid=group)
        await api.post("/access/roles", roleid="Helper", privs="User.Modify,Realm.AllocateUser")
        helper = await user(api, "helper", ("/access/groups/ours", "Helper"), ("/access/realm/pve", "Helper"))
        await helper.post("/access/users", userid="new@pve", groups="ours")
        await api.post("/access/users", userid="other@pve", groups="theirs")
        no_group = await refusal(helper.post("/access/users", userid="x@pve"))
        assert no_group.reason == "Permission check failed (/access/groups, User.Modify)"
        wrong_group = await refusal(helper.post("/access/users", userid="x@pve", groups="theirs"))
        assert wrong_group.reason == "Permission check failed (/access/groups/theirs, User.Modify)"
        wrong_realm = await refusal(helper.post("/access/users", userid="x@pam", groups="ours"))
        assert wrong_realm.reason == "Permission check failed (/access/realm/pam, Realm.AllocateUser)"
        await helper.post("/access/users/new@pve/token/t1")
        for call in (helper.get("/access/users/other@pve"), helper.delete("/access/users/other@pve")):
            assert str(await refusal(call)) == "403 Permission check failed"
        assert {row["userid"] for row in await helper.get("/access/users")} == {"helper@pve", "new@pve"}
        assert [row["groupid"] for row in await helper.get("/access/groups")] == ["ours"]
        await helper.put(
            "/access/password", userid="new@pve", password="secret456", confirmation__password="secret123"
        )
        await api.with_password("new@pve", "secret456")
        await helper.delete("/access/users/new@pve")


async def test_everybody_keeps_their_own_tokens() -> None:
    async with with_lab() as api:
        bob, eve = await user(api, "bob"), await user(api, "eve")
        made = await bob.post("/access/users/bob@pve/token/mine", privsep=0)
        assert [row["tokenid"] for row in await bob.get("/access/users/bob@pve/token")] == ["mine"]
        for call in (
            eve.get("/access/users/bob@pve/token/mine"),
            eve.post("/access/users/bob@pve/token/other"),
            eve.delete("/access/users/bob@pve/token/mine"),
        ):
            assert (await refusal(call)).status == 403
        token = api.with_token(f"bob@pve!mine={made['value']}")
        assert await token.get("/access/permissions") == {}


async def test_a_separated_token_has_what_it_and_its_user_both_have() -> None:
    async with with_lab() as api:
        await user(api, "bob", ("/vms", "PVEVMUser"))
        made = await api.post("/access/users/bob@pve/token/t1")
        token = api.with_token(f"bob@pve!t1={made['value']}")
        assert await token.get("/access/permissions", path="/vms/100") == {"/vms/100": {}}
        await api.put(ACL, path="/vms/100", roles="PVEVMAdmin", tokens="bob@pve!t1")
        granted = (await token.get("/access/permissions", path="/vms/100"))["/vms/100"]
        assert "VM.PowerMgmt" in granted
        assert "VM.Allocate" not in granted
        seen = await refusal(token.get("/access/permissions", userid="root@pam"))
        assert seen.reason == "Permission check failed (/access, Sys.Audit)"
        of_token = await api.get("/access/permissions", userid="bob@pve!t1")
        assert set(of_token) == {"/vms/100"}


async def test_without_quorum_nobody_changes_access_but_all_can_read_it() -> None:
    async with with_lab(nodes=("pve1", "pve2")) as api:
        with api.world.store.transaction(), api.world.store.edit("cluster", "state") as state:
            state["quorum"] = "lost"
        refused = await refusal(api.post("/access/groups", groupid="ops"))
        assert refused.reason == "create group failed: cfs-lock 'file-user_cfg' error: no quorum!"
        assert await api.get("/access/groups") == []
