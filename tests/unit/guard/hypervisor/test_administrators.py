"""Somebody stays administrator, and the token in use keeps its rights."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from tests.support.hypervisor_guard import created, judge, removed, updated
from tests.support.lab import LabClient, lab_client

from stackyard.engine.changes import Change

LAST, OWN, UNKNOWN = "E-GUARD-LAST-ADMINISTRATOR", "E-GUARD-OWN-RIGHTS", "E-GUARD-ACCESS-UNKNOWN"
ENTRY = {"path": "/", "role_id": "Iac", "group_id": "robots", "propagate": True}
ROBOT: dict[str, Any] = {"user_id": "iac@pve", "enabled": True, "groups": ["robots"]}
PRIVILEGES = ["Sys.Audit", "Sys.Modify", "User.Modify", "VM.Audit", "VM.Allocate"]
ROLE = {"role_id": "Iac", "privileges": PRIVILEGES}


@contextlib.asynccontextmanager
async def with_token() -> AsyncIterator[tuple[LabClient, str]]:
    """Have a lab with a token that has its rights from the group of its user."""
    async with lab_client() as api:
        await api.post("/access/roles", roleid="Iac", privs=",".join(PRIVILEGES))
        await api.post("/access/groups", groupid="robots")
        await api.post("/access/users", userid="iac@pve", groups="robots")
        await api.put("/access/acl", path="/", roles="Iac", groups="robots")
        answer = await api.post("/access/users/iac@pve/token/tofu", privsep=0)
        yield api, f"iac@pve!tofu={answer['value']}"


async def codes(api: LabClient, token: str | None, *changes: Change) -> dict[str, str]:
    found = await judge(api.running, *changes, token=token)
    return {one.kind.code: one.detail for one in found if one.kind.code in (LAST, OWN, UNKNOWN)}


CHANGES: tuple[tuple[Change, str], ...] = (
    (removed("virtual_environment_user", **ROBOT), "Sys.Audit, Sys.Modify"),
    (updated("virtual_environment_user", ROBOT, enabled=False), "VM.Allocate"),
    (updated("virtual_environment_user", ROBOT, expiration_date="2020-01-01T00:00:00Z"), "VM.Allocate"),
    (updated("virtual_environment_user", ROBOT, groups=[]), "VM.Allocate"),
    (removed("acl", **ENTRY), "VM.Allocate"),
    (updated("virtual_environment_role", ROLE, privileges=PRIVILEGES[:-1]), "VM.Allocate on /."),
    # An entry of its own hides that of its group.
    (created("acl", path="/", role_id="PVEAuditor", user_id="iac@pve"), "VM.Allocate"),
    (created("acl", path="/vms", role_id="NoAccess", user_id="iac@pve"), "VM.Allocate, VM.Audit on /vms"),
    (removed("user_token", user_id="iac@pve", token_name="tofu"), "VM.Allocate"),
)


async def test_the_token_in_use_keeps_its_rights() -> None:
    async with with_token() as (api, token):
        for change, lost in CHANGES:
            assert lost in (await codes(api, token, change))[OWN]
            # Another token may do it.
            assert await codes(api, None, change) == {}


async def test_changes_of_others_are_no_loss() -> None:
    async with with_token() as (api, token):
        other = {"user_id": "ann@pve", "enabled": True, "groups": []}
        changes = (
            created("acl", path="/vms", role_id="PVEVMAdmin", user_id="ann@pve"),
            updated("virtual_environment_user", other, enabled=False),
            updated("virtual_environment_role", ROLE, privileges=[*PRIVILEGES, "VM.Backup"]),
        )
        assert await codes(api, token, *changes) == {}


async def test_one_administrator_is_left() -> None:
    async with with_token() as (api, token):
        await api.post("/access/users", userid="boss@pve")
        await api.put("/access/acl", path="/", roles="Administrator", users="boss@pve")
        boss = {"user_id": "boss@pve", "enabled": True, "groups": []}
        root = {"user_id": "root@pam", "enabled": True, "groups": []}
        assert LAST not in await codes(api, token, removed("virtual_environment_user", **boss))
        assert LAST not in await codes(api, token, updated("virtual_environment_user", root, enabled=False))
        both = (
            updated("virtual_environment_user", boss, enabled=False),
            updated("virtual_environment_user", root, enabled=False),
        )
        assert "boss@pve, root@pam" in (await codes(api, token, *both))[LAST]


async def test_who_may_not_look_is_refused() -> None:
    async with with_token() as (api, token):
        await api.put("/access/roles/Iac", privs="User.Modify")
        found = await codes(api, token, removed("acl", **ENTRY))
        assert set(found) == {UNKNOWN}


async def test_what_is_done_with_tokens_beside_the_engine_counts() -> None:
    settings = {"user_id": "iac@pve", "token_name": "tofu", "privileges_separation": False}
    step = updated("user_token", settings, expiration_date="2020-01-01T00:00:00Z")
    async with with_token() as (api, token):
        for user, expected in ((token, [OWN]), (None, [])):
            found = await judge(api.running, token=user, beside=(step,))
            assert [one.kind.code for one in found] == expected
