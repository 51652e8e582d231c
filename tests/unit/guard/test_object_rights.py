"""A plan for a cluster is refused where its token may not do all of it: nothing is made in part."""

from __future__ import annotations

from tests.support.hypervisor_guard import created, judge, removed, updated
from tests.support.lab import LabClient, lab_client

from stackyard.engine.changes import Change

NEW = (
    created("storage_directory", id="fast", path="/srv/fast"),
    created("virtual_environment_group", group_id="ops"),
    created("virtual_environment_role", role_id="Ops", privileges=["VM.Audit"]),
    created("virtual_environment_user", user_id="ann@pve", groups=["ops"]),
    created("acl", path="/vms/100", group_id="ops", role_id="Ops"),
    created("realm_ldap", realm="home", server1="ldap.example"),
    created("hardware_mapping_pci", name="gpu", map=[]),
    created("backup_job", id="nightly"),
    created("virtual_environment_firewall_alias", name="office", cidr="192.0.2.1"),
    created("virtual_environment_dns", node_name="pve1", domain="lan"),
    created("apt_standard_repository", node="pve1", handle="test"),
)
NEEDED = {
    "Datastore.Allocate": "/storage",
    "Group.Allocate": "/access/groups",
    "Mapping.Modify": "/mapping/pci",
    "Permissions.Modify": "/vms/100",
    "Realm.Allocate": "/access/realm",
    "Realm.AllocateUser": "/access/realm/pve",
    "Sys.Modify": "/, /access, /nodes/pve1",
    "User.Modify": "/access/groups",
}


async def token_with(api: LabClient, **roles: str) -> str:
    await api.post("/access/users", userid="ci@pve")
    made = await api.post("/access/users/ci@pve/token/run", privsep=0)
    for path, privileges in {"/": "Sys.Audit,VM.Audit", **roles}.items():
        name = f"R{abs(hash(path))}"
        await api.post("/access/roles", roleid=name, privs=privileges)
        await api.put("/access/acl", path=path, roles=name, users="ci@pve")
    return f"{made['full-tokenid']}={made['value']}"


async def missing(api: LabClient, token: str, *changes: Change) -> dict[str, str]:
    found = await judge(api.running, *changes, token=token)
    details = [one.detail for one in found if one.kind.code == "E-PREFLIGHT-PRIVILEGE"]
    split = [detail.partition(" is missing on ") for detail in details]
    return {privilege: rest.partition(";")[0] for privilege, _, rest in split}


async def test_each_privilege_that_an_object_needs_is_named_with_its_path() -> None:
    async with lab_client() as api:
        token = await token_with(api)
        assert await missing(api, token, *NEW) == NEEDED
        assert await missing(api, api.running.api_token, *NEW) == {}


async def test_rights_on_what_is_meant_are_enough() -> None:
    async with lab_client() as api:
        token = await token_with(
            api,
            **{
                "/access/groups/ops": "User.Modify",
                "/vms": "VM.Allocate",
                "/mapping/pci/gpu": "Mapping.Modify",
                "/nodes/pve1": "Sys.Modify",
            },
        )
        before = {"name": "gpu", "map": [], "comment": ""}
        assert (
            await missing(
                api,
                token,
                updated(
                    "virtual_environment_user", {"user_id": "ann@pve", "groups": ["ops"]}, email="a@b.example"
                ),
                removed("acl", path="/vms/100", group_id="ops", role_id="Ops"),
                updated("hardware_mapping_pci", before, comment="for games"),
                updated("virtual_environment_firewall_rules", {"node_name": "pve1", "rule": []}, rule=[{}]),
            )
            == {}
        )
