"""Seeds: what comes with the lab, what a file may say, and copies of clusters that run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.lab import ROOMY, LabClient, Refused, lab_client

from pvelab import exporting
from pvelab.seeds import SeedError, load_seed, parse_seed, seed_names
from pvelab.server import facts
from pvelab.server.problems import PveError

# What depends on the hour and not on the cluster.
MOVING = ("uptime", "mem", "memhost", "cpu", "disk", "maxdisk")


async def copy_of(api: LabClient) -> exporting.Source:
    """Return what reads a lab."""

    async def get(path: str, params: Mapping[str, Any]) -> Any:
        try:
            return await api.get(path, **params)
        except Refused as err:
            raise PveError(err.reason, status=err.status) from err

    return exporting.Source(get, facts.load())


async def exported(api: LabClient) -> tuple[dict[str, Any], dict[str, str]]:
    source = await copy_of(api)
    document = await exporting.export_seed(source)
    kept, refused = await exporting.rehearse(document, source.facts)
    return kept, {**source.left_out, **refused}


async def portrait(api: LabClient) -> dict[str, Any]:
    """Return all of a lab that its copy must have too."""
    resources = await api.get("/cluster/resources")
    shown: dict[str, Any] = {
        "resources": sorted(
            ({key: value for key, value in row.items() if key not in MOVING} for row in resources),
            key=lambda row: str(row["id"]),
        )
    }
    for row in resources:
        if row["type"] in ("qemu", "lxc"):
            base = f"/nodes/{row['node']}/{row['type']}/{row['vmid']}"
            config = await api.get(f"{base}/config")
            shown[base] = {key: value for key, value in config.items() if key not in ("digest", "cipassword")}
            shown[f"{base}/snapshot"] = [
                {key: value for key, value in snapshot.items() if key != "digest"}
                for snapshot in await api.get(f"{base}/snapshot")
            ]
            shown[f"{base}/rules"] = [
                {key: value for key, value in rule.items() if key != "digest"}
                for rule in await api.get(f"{base}/firewall/rules")
            ]
    for path in (
        *("/storage", "/access/acl", "/access/users", "/access/roles", "/cluster/backup"),
        *("/cluster/firewall/rules", "/cluster/firewall/aliases", "/cluster/firewall/ipset"),
    ):
        shown[path] = [
            {key: value for key, value in row.items() if key not in ("digest", "next-run")}
            for row in await api.get(path)
        ]
    return shown


@pytest.mark.parametrize("name", ["minimal", "homelab", "demo"])
async def test_a_lab_made_from_an_export_is_the_lab_that_was_exported(name: str) -> None:
    async with lab_client(seed=load_seed(name)) as api:
        document, left_out = await exported(api)
        before = await portrait(api)
    assert left_out == {}
    text = exporting.format_seed(document, source="a lab", left_out={})
    seed = parse_seed(yaml.safe_load(text), name="copy")
    async with lab_client(seed=seed) as api:
        assert await portrait(api) == before
        assert (await exported(api))[0] == document


async def test_groups_that_are_not_migrated_are_in_the_copy_of_a_cluster() -> None:
    async with lab_client(seed=parse_seed({"ha_groups": True, "guests": [{"vmid": 100}]})) as api:
        await api.post("/cluster/ha/groups", group="place", nodes="pve1:2", restricted=1)
        await api.post("/cluster/ha/resources", sid="vm:100", group="place", state="ignored")
        document, left_out = await exported(api)
    assert (document["ha_groups"], left_out) == (True, {})
    async with lab_client(seed=parse_seed(document)) as api:
        assert (await api.get("/cluster/ha/groups/place"))["restricted"] == 1
        assert (await api.get("/cluster/ha/resources/vm:100"))["group"] == "place"


async def test_an_auditor_can_make_a_copy() -> None:
    async with lab_client(seed=load_seed("homelab")) as api:
        await api.post("/access/users", userid="audit@pve")
        made = await api.post("/access/users/audit@pve/token/copy", privsep=0)
        await api.put("/access/acl", path="/", users="audit@pve", roles="PVEAuditor")
        auditor = api.with_token(f"audit@pve!copy={made['value']}")
        document, left_out = await exported(auditor)
        before = (await portrait(api))["/nodes/pve1/qemu/101"]
    assert left_out == {}
    assert "cipassword" not in str(document)
    async with lab_client(seed=parse_seed(document)) as api:
        assert (await portrait(api))["/nodes/pve1/qemu/101"] == before
        assert {row["vmid"] for row in await api.get("/cluster/resources", type="vm")} == {
            *range(100, 107),
            *(201, 202, 203),
            9000,
        }
        # An auditor does not see the disks of others, so they are made from what the guests say.
        listed = await api.get("/nodes/pve1/storage/tank/content", vmid=101)
        assert {row["volid"] for row in listed} >= {"tank:vm-101-disk-0", "tank:vm-101-disk-1"}


async def test_an_export_only_reads_and_holds_no_secret() -> None:
    async with lab_client(seed=load_seed("homelab")) as api:
        await api.put("/nodes/pve1/qemu/102/config", cipassword="Hidden-1")
        await api.post("/access/users", userid="eve@pve", password="Hidden-2")
        token = (await api.post("/access/users/eve@pve/token/own"))["value"]
        await api.post(
            "/storage",
            storage="win",
            type="cifs",
            server="nas",
            share="s",
            username="u",
            password="Hidden-3",
        )
        calls = api.world.journal.count
        document, _ = await exported(api)
        made = [entry.method for entry in api.world.journal.entries(calls)]
    assert made
    assert set(made) == {"GET"}
    text = exporting.format_seed(document, source="a lab", left_out={})
    assert "Hidden" not in text
    assert token not in text
    assert "win" in document["storages"]


async def test_what_a_lab_refuses_of_a_copy_is_taken_out_and_named() -> None:
    document: dict[str, Any] = {
        "nodes": ["pve1"],
        "calls": [
            {"path": "/pools", "parameters": {"poolid": "a"}},
            {"path": "/pools", "parameters": {"poolid": "a"}},
            {"method": "PUT", "path": "/pools", "parameters": {"poolid": "b", "vms": "100"}},
        ],
    }
    kept, reasons = await exporting.rehearse(document, facts.load())
    assert kept["calls"] == document["calls"][:1]
    assert list(reasons) == ["POST /pools (2)", "PUT /pools (3)"]
    assert "already exists" in reasons["POST /pools (2)"]


async def test_the_big_seed_has_ten_thousand_guests_on_twenty_nodes() -> None:
    async with lab_client(seed=load_seed("big")) as api:
        rows = await api.get("/cluster/resources")
        assert sum(row["type"] in ("qemu", "lxc") for row in rows) == 10_000
        assert sum(row["type"] == "node" for row in rows) == 20
        on_first = len(await api.get("/nodes/pve01/qemu")) + len(await api.get("/nodes/pve01/lxc"))
        assert 450 < on_first < 550
        # They are guests like any other.
        vm = next(
            row
            for row in rows
            if row["type"] == "qemu" and row["status"] == "stopped" and not row["template"]
        )
        base = f"/nodes/{vm['node']}/qemu/{vm['vmid']}"
        assert await api.done(await api.post(f"{base}/status/start")) == "OK"
        assert await api.done(await api.post(f"{base}/clone", newid=999, full=1)) == "OK"


def test_the_seed_of_yaml_in_a_file_is_read_with_the_place_of_a_mistake(tmp_path: Path) -> None:
    assert {"minimal", "homelab", "big"} <= set(seed_names())
    file = tmp_path / "mine.yaml"
    file.write_text(
        "nodes:\n- {name: a, memory: 1024}\nguests:\n- {vmid: 100, node: a, config: {onboot: yes}}\n"
    )
    seed = load_seed(str(file))
    assert (seed.nodes, seed.machines["a"].memory, seed.guests[0].config) == (("a",), 1024, {"onboot": 1})
    file.write_text("nodes: [a\nguests: x")
    with pytest.raises(SeedError, match="is not YAML") as caught:
        load_seed(str(file))
    assert caught.value.where is not None
    assert caught.value.where.line == 2


def test_what_is_wrong_with_guests_and_storages_of_a_seed_is_found_at_once() -> None:
    wrong = {
        "nodes": [{"name": "a", "memory": -1}],
        "storages": {"x": {}},
        "capacities": [{"storage": "x"}],
        "volumes": [{"volume": "x"}, {"volume": "x:y", "node": "b", "size": 1}],
        "guests": [{"vmid": 1}, {"vmid": 100, "node": "c"}],
        "ha_groups": "yes",
    }
    with pytest.raises(SeedError) as caught:
        parse_seed(wrong)
    assert len(caught.value.diagnostics) == 8


async def test_a_seed_with_a_storage_that_no_lab_has_is_refused() -> None:
    with pytest.raises(SeedError, match="has the type 'linstor', which the lab does not have"):
        async with lab_client(seed=parse_seed({"storages": {"x": {"type": "linstor"}}})):
            pass


async def test_the_nodes_of_a_lab_stand_for_those_of_the_seed() -> None:
    async with lab_client(seed=load_seed("homelab"), nodes=("one",)) as api:
        rows = await api.get("/cluster/resources", type="vm")
        assert {row["node"] for row in rows} == {"one"}
        assert (await api.get("/nodes/one/qemu/101/firewall/rules"))[0]["action"] == "webserver"


async def test_disks_are_made_from_what_guests_say_whatever_their_names() -> None:
    seed = parse_seed(
        {
            "storages": ROOMY.storages,
            "guests": [
                {
                    "vmid": 100,
                    "config": {
                        "scsi0": "local-lvm:vm-100-disk-0,size=4G",
                        "scsi1": "local:100/vm-100-disk-0.qcow2,size=2G",
                        "scsi2": "local-lvm:mysql_data,size=1G",
                        "ide2": "local:iso/gone.iso,media=cdrom",
                        "scsi3": "/dev/disk/by-id/x,size=9G",
                    },
                },
                {"vmid": 101, "type": "lxc", "config": {"rootfs": "local-lvm:vm-101-disk-0,size=8G"}},
            ],
        }
    )

    async with lab_client(seed=seed) as api:
        rows = await api.get("/nodes/pve1/storage/local-lvm/content")
        assert {row["volid"]: (row["size"] >> 30, row["content"]) for row in rows} == {
            "local-lvm:vm-100-disk-0": (4, "images"),
            "local-lvm:mysql_data": (1, "images"),
            "local-lvm:vm-101-disk-0": (8, "rootdir"),
        }
        [image] = await api.get("/nodes/pve1/storage/local/content", content="images")
        assert (image["volid"], image["format"]) == ("local:100/vm-100-disk-0.qcow2", "qcow2")
        assert await api.done(await api.post("/nodes/pve1/lxc/101/status/start")) == "OK"


async def test_a_lab_with_data_keeps_what_its_seed_put_there(tmp_path: Path) -> None:
    async with lab_client(data=tmp_path, seed=load_seed("homelab")) as api:
        before = await portrait(api)
        await api.done(await api.delete("/nodes/pve2/qemu/105"))
    async with lab_client(data=tmp_path, seed=load_seed("homelab")) as api:
        after = await portrait(api)
        gone = [path for path in before if path not in after]
        assert gone == [path for path in before if path.startswith("/nodes/pve2/qemu/105")]


async def test_local_takes_what_the_installer_lets_it_take_unless_the_seed_says_otherwise() -> None:
    async def contents(seed: Any) -> str:
        async with lab_client(seed=seed) as api:
            text: str = (await api.get("/storage/local"))["content"]
            return text

    assert await contents(parse_seed({})) == "iso,vztmpl,backup,import"
    assert await contents(load_seed("stock")) == "iso,vztmpl,backup,import"
    for name in ("empty", "minimal", "small", "demo"):
        assert await contents(load_seed(name)) == "iso,vztmpl,backup,import,snippets"
    own = {"local": {"type": "dir", "path": "/var/lib/vz", "content": "iso"}}
    assert await contents(parse_seed({"storages": own})) == "iso"


async def test_a_node_as_the_installer_leaves_it_has_no_place_for_disks_and_snippets_on_local() -> None:
    async with lab_client(seed=load_seed("stock")) as api:
        with pytest.raises(Refused) as caught:
            await api.post("/nodes/pve1/qemu", vmid=100, scsi0="local:1")
        assert caught.value.errors == {"storage": "storage 'local' does not support vm images"}
        with api.world.store.transaction():
            api.world.volumes.add("local:vztmpl/a.tar.zst", "pve1", 9, content="vztmpl", format="tzst")
            api.world.volumes.add("local:snippets/a.yaml", "pve1", 9, content="snippets", format="raw")
        template = "local:vztmpl/a.tar.zst"
        with pytest.raises(Refused, match="storage 'local' does not support container directories"):
            await api.post("/nodes/pve1/lxc", vmid=100, ostemplate=template, storage="local")
        rows = await api.get("/nodes/pve1/storage/local/content")
        assert [row["volid"] for row in rows] == [template]
        await api.put("/storage/local", content="iso,vztmpl,snippets")
        rows = await api.get("/nodes/pve1/storage/local/content")
        assert [row["volid"] for row in rows] == ["local:snippets/a.yaml", template]
