"""Privileges: inheritance, propagation, groups, pools, tokens."""

from __future__ import annotations

from typing import Any

import pytest

from pvelab.server import facts
from pvelab.server.problems import PveError
from pvelab.world.access.checks import check_call
from pvelab.world.access.permissions import Permissions
from pvelab.world.access.roles import BUILTIN_ROLES, PRIVILEGES
from pvelab.world.clock import LabClock
from pvelab.world.store import Store

FACTS = facts.load()


def world(acl: dict[str, dict[str, Any]], pools: dict[str, int] | None = None, **token: int) -> Permissions:
    store = Store()
    with store.transaction():
        store.put("users", "root@pam", {"tokens": {"full": {"privsep": 0}, "apart": {"privsep": 1}}})
        store.put("users", "bob@pve", {"groups": ["ops"], "tokens": {"ci": {"privsep": 1, **token}}})
        store.put("users", "eve@pve", {"groups": []})
        store.put("groups", "ops", {})
        store.put("roles", "Starter", {"privs": ["VM.PowerMgmt"]})
        for path, entries in acl.items():
            store.put("acl", path, entries)
        for pool, vmid in (pools or {}).items():
            store.put("pool_members", f"vm/{vmid}", {"pool": pool, "vmid": vmid})
    return Permissions(store, LabClock())


def users(role: str, propagate: int = 1, who: str = "bob@pve") -> dict[str, Any]:
    return {"users": {who: {role: propagate}}}


@pytest.mark.parametrize(
    ("acl", "path", "expected"),
    [
        ({"/": users("PVEVMUser")}, "/vms/100", True),
        ({"/": users("PVEVMUser", 0)}, "/vms/100", False),
        ({"/vms/100": users("PVEVMUser", 0)}, "/vms/100", True),
        ({"/vms/100": users("PVEVMUser")}, "/vms/101", False),
        ({"/": users("PVEVMUser"), "/vms/100": users("NoAccess")}, "/vms/100", False),
        ({"/": users("PVEVMUser"), "/vms": users("PVEAuditor")}, "/vms/100", False),
        ({"/": users("NoAccess"), "/vms/100": users("PVEVMUser")}, "/vms/100", True),
        ({"/vms": {"groups": {"ops": {"PVEVMUser": 1}}}}, "/vms/100", True),
        ({"/vms": {"groups": {"other": {"PVEVMUser": 1}}}}, "/vms/100", False),
        (
            {"/vms": {"groups": {"ops": {"PVEVMUser": 1}}, "users": {"bob@pve": {"PVEAuditor": 1}}}},
            "/vms/100",
            False,
        ),
        ({"/vms": {"groups": {"ops": {"Starter": 1}}}}, "/vms/100", True),
    ],
)
def test_who_may_power_a_guest(acl: dict[str, Any], path: str, expected: bool) -> None:
    assert world(acl).has("bob@pve", path, ["VM.PowerMgmt"]) is expected


@pytest.mark.parametrize(
    ("acl", "path", "expected"),
    [
        ({"/pool/web": users("PVEVMUser")}, "/vms/100", True),
        ({"/pool/web": users("PVEVMUser"), "/vms/100": users("NoAccess")}, "/vms/100", False),
        ({"/pool/web": users("NoAccess"), "/vms/100": users("PVEVMUser")}, "/vms/100", False),
        ({"/pool/web": users("PVEVMUser")}, "/vms/101", False),
        ({"/": users("PVEVMUser"), "/vms": users("PVEAuditor")}, "/vms/100", True),
    ],
)
def test_a_member_of_a_pool_has_the_roles_of_the_pool(acl: dict[str, Any], path: str, expected: bool) -> None:
    assert world(acl, {"web": 100}).has("bob@pve", path, ["VM.PowerMgmt"]) is expected


@pytest.mark.parametrize(
    ("acl", "privsep", "expected"),
    [
        ({"/": users("PVEVMUser")}, 0, True),
        ({"/": users("PVEVMUser")}, 1, False),
        ({"/": {**users("PVEVMUser"), "tokens": {"bob@pve!ci": {"PVEVMUser": 1}}}}, 1, True),
        ({"/": {"tokens": {"bob@pve!ci": {"PVEVMUser": 1}}}}, 1, False),
    ],
)
def test_a_separated_token_has_what_both_it_and_its_user_have(
    acl: dict[str, Any], privsep: int, expected: bool
) -> None:
    assert world(acl, privsep=privsep).has("bob@pve!ci", "/vms/100", ["VM.PowerMgmt"]) is expected


def test_root_and_its_full_token_may_everything_and_its_separated_token_nothing() -> None:
    found = world({})
    assert set(found.of("root@pam", "/anything")) == PRIVILEGES
    assert set(found.of("root@pam!full", "/anything")) == PRIVILEGES
    assert found.of("root@pam!apart", "/") == {}
    assert found.of("nobody@pve", "/") == {}
    assert found.of("root@pam!gone", "/") == {}


def test_a_change_of_the_acl_counts_at_once() -> None:
    store = Store()
    found = Permissions(store, LabClock())
    with store.transaction():
        store.put("users", "bob@pve", {})
    assert not found.has("bob@pve", "/vms/100", ["VM.Audit"])
    with store.transaction():
        store.put("acl", "/vms", users("PVEAuditor"))
    assert found.has("bob@pve", "/vms/100", ["VM.Audit"])
    with store.transaction():
        store.delete("acl", "/vms")
    assert not found.has("bob@pve", "/vms/100", ["VM.Audit"])


def test_a_refusal_names_the_path_and_the_privilege() -> None:
    found = world({})
    with pytest.raises(PveError) as caught:
        found.check("bob@pve", "/vms/100", ["VM.Allocate"])
    assert (caught.value.status, caught.value.text) == (
        403,
        "Permission check failed (/vms/100, VM.Allocate)",
    )
    with pytest.raises(PveError) as caught:
        found.check("bob@pve", "/storage/x", ["Datastore.AllocateSpace", "Datastore.Audit"], any_of=True)
    text = "Permission check failed (/storage/x, Datastore.AllocateSpace|Datastore.Audit)"
    assert caught.value.text == text


@pytest.mark.parametrize(
    ("acl", "route", "given", "refusal"),
    [
        ({}, "GET /version", {}, None),
        ({}, "GET /nodes/{node}/status", {"node": "a"}, "(/nodes/a, Sys.Audit)"),
        ({}, "PUT /access/password", {"userid": "bob@pve"}, None),
        ({}, "PUT /access/password", {"userid": "eve@pve"}, ""),
        (
            {"/access/acl": {}},
            "PUT /access/acl",
            {"path": "/vms/100"},
            "(/vms/100, Permissions.Modify|VM.Allocate)",
        ),
        ({"/vms/100": users("PVEVMAdmin")}, "PUT /access/acl", {"path": "/vms/100"}, None),
        (
            {"/vms/100": users("PVEVMAdmin")},
            "POST /nodes/{node}/qemu/{vmid}/clone",
            {"vmid": 100, "newid": 101},
            "",
        ),
        (
            {"/vms": users("PVEVMAdmin")},
            "POST /nodes/{node}/qemu/{vmid}/clone",
            {"vmid": 100, "newid": 101},
            None,
        ),
        (
            {"/vms/100": users("PVEVMAdmin"), "/pool/p": users("PVEVMAdmin")},
            "POST /nodes/{node}/qemu/{vmid}/clone",
            {"vmid": 100, "newid": 101, "pool": "p"},
            None,
        ),
        (
            {"/access/groups/ops": users("PVEUserAdmin")},
            "GET /access/users/{userid}",
            {"userid": "eve@pve"},
            "",
        ),
        (
            {"/access/groups/ops": users("PVEUserAdmin")},
            "GET /access/users/{userid}",
            {"userid": "bob@pve"},
            None,
        ),
    ],
)
def test_the_declared_expression_of_a_call_decides(
    acl: dict[str, Any], route: str, given: dict[str, Any], refusal: str | None
) -> None:
    found, declared = world(acl), FACTS[route].permissions
    if refusal is None:
        check_call(found, declared, "bob@pve", given)
        return
    with pytest.raises(PveError) as caught:
        check_call(found, declared, "bob@pve", given)
    assert caught.value.text == f"Permission check failed {refusal}".strip()


def test_a_call_without_a_declared_privilege_is_for_root_alone() -> None:
    found = world({"/": users("Administrator")})
    with pytest.raises(PveError, match=r"user != root@pam"):
        check_call(found, None, "bob@pve", {})
    with pytest.raises(PveError, match=r"user != root@pam"):
        check_call(found, None, "root@pam!full", {})
    check_call(found, None, "root@pam", {})


def test_every_declared_expression_can_be_evaluated() -> None:
    given, found = {"userid": "bob@pve", "path": "/"}, world({})
    statuses = set()
    for method in FACTS.methods.values():
        try:
            check_call(found, method.permissions, "bob@pve", given)
        except PveError as err:
            statuses.add(err.status)
    assert statuses == {403}


def test_the_roles_that_proxmox_ships_are_there() -> None:
    assert len(BUILTIN_ROLES) == 17
    assert BUILTIN_ROLES["Administrator"] == PRIVILEGES
    assert "Mapping.Modify" not in BUILTIN_ROLES["PVEAdmin"]
