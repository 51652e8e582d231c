"""A deployment object with everything that the readers of its inventory look for, applied and read by them.

What the readers do is written here in the way in which they do it: the keys that they require, how they make
hosts of guests, and the ports that they look up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from tests.support.deployment import CONTAINER, edited, text_of
from tests.support.deployment_rig import TWO, Rig, running_rig
from tests.support.path import lasting_home
from tests.support.provider import make_template

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

TEMPLATE = 9100
PCT = "community.proxmox.proxmox_pct_remote"
GUESTS = edited(
    TWO,
    domain="example.com",
    datastore_id="local-lvm",
    network_cidrs={"compute": "10.0.10.0/24", "siem": "10.0.40.0/24", "apps": "10.0.60.0/24"},
    host_services={"nas": {"zfs_dataset": "tank/share", "directories": ["a"]}},
    constants={"service_ports": {"my_api": 8443, "splunk_web": 8001}},
    containers__leased={**CONTAINER, "vm_id": 125, "hostname": "leased", "dhcp": True},
    containers__direct={**CONTAINER, "vm_id": 126, "hostname": "direct", "ansible_connection": "ssh"},
    splunk_vm_id=110,
    splunk_vm_name="splunk-aio",
    splunk_vm_pool_id="infrastructure",
    splunk_cpu_cores=2,
    splunk_memory=2048,
    splunk_data_disk_size=1,
    splunk_boot_disk_size=4,
    splunk_cpu_type="x86-64-v2-AES",
    template_id=TEMPLATE,
    acme_accounts={},
)
GUEST = {
    "type": "object",
    "required": ["vmid", "ip", "hostname", "ansible_connection", "tags", "node"],
    "properties": {
        "vmid": {"type": "integer", "minimum": 100},
        "ip": {"type": "string", "pattern": r"^\d{1,3}(\.\d{1,3}){3}$"},
        "mac": {"type": ["string", "null"], "pattern": "^([0-9a-f]{2}:){5}[0-9a-f]{2}$"},
    },
}
PORTS = {"type": "object", "minProperties": 1, "additionalProperties": {"type": "integer"}}
READ = {
    "type": "object",
    "required": [
        *("containers", "vms", "docker_vms", "splunk_vm", "constants", "ingress", "host_services", "nodes"),
        *("node_storage", "domain", "ingress_vip", "ingress_hosts"),
    ],
    "properties": {
        "schema_version": {"pattern": r"^2\.\d+\.\d+$"},
        "domain": {"type": "string", "minLength": 1},
        "containers": {
            "additionalProperties": {**GUEST, "required": [*GUEST["required"], "ansible_pct_vmid"]}
        },
        "vms": {"additionalProperties": GUEST},
        "docker_vms": {"additionalProperties": GUEST},
        "splunk_vm": {"minProperties": 1, "maxProperties": 1, "additionalProperties": GUEST},
        "nodes": {"additionalProperties": {"required": ["role"]}},
        "constants": {
            "required": ["syslog_port_map", "media_ports", "ai_log_ports", "ai_log_routing"],
            "properties": {
                name: PORTS
                for name in (
                    *("service_ports", "syslog_ports", "netflow_ports", "notification_ports"),
                    "vector_db_ports",
                )
            },
        },
    },
}
LOOKED_UP = (
    *(
        "object_storage_s3",
        "cribl_edge_api",
        "otel_traces_http",
        "openbao_api",
        "postgres_default",
        "zammad_web",
    ),
    *("splunk_hec", "splunk_mgmt", "haproxy_stats", "cribl_stream_api", "proxmox_web", "authelia_portal"),
)


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("rig")
    with lasting_home(folder) as env, running_rig(folder, is_applied=False, env=env) as made:
        yield made


@pytest.fixture(scope="module")
def applied(rig: Rig) -> Path:
    """Apply the object, and return the folder of its inventory."""
    make_template(rig.yard.running, "pve1", TEMPLATE)
    rig.plant(GUESTS)
    rig.yard.run("apply", "deployment", "--no-verify")
    where = rig.yard.json("inventory", "publish", "deployment")["where"]
    return Path(where).parent


def hosts_of(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the hosts that a reader makes of an inventory: containers through their node."""
    hosts = {
        key: {
            "proxmox_vmid": row["vmid"],
            "ansible_host": f"{data['nodes'].get(row['node'], {}).get('role', row['node'])}.{data['domain']}",
            "ansible_connection": row["ansible_connection"],
            "container_ip": row["ip"],
        }
        for key, row in data["containers"].items()
    }
    for key, row in {**data["vms"], **data["docker_vms"], **data["splunk_vm"]}.items():
        hosts[key] = {"ansible_host": row["ip"], "ansible_connection": row["ansible_connection"]}
    return hosts


def test_the_inventory_has_what_its_readers_require(applied: Path) -> None:
    data = json.loads((applied / "ansible_inventory.json").read_text())
    assert [error.message for error in jsonschema_rs.validator_for(READ).iter_errors(data)] == []
    ports = data["constants"]["service_ports"]
    assert all(ports[name] for name in LOOKED_UP)
    assert (ports["my_api"], ports["splunk_web"]) == (8443, 8001)
    assert data["constants"]["syslog_ports"]["default"] == 514
    assert data["host_services"] == GUESTS["host_services"]
    splunk = data["splunk_vm"]["splunk"]
    assert (splunk["vmid"], splunk["hostname"], splunk["ip"]) == (110, "splunk-aio", "10.0.40.110")
    assert splunk["ansible_connection"] == "ssh"
    assert "splunk" not in {**data["vms"], **data["docker_vms"]}
    assert data["containers"]["leased"]["mac"].startswith("02:")


def test_the_file_of_ansible_reaches_containers_as_its_readers_do(applied: Path) -> None:
    data = json.loads((applied / "ansible_inventory.json").read_text())
    written = yaml.safe_load((applied / "inventory.yml").read_text())["all"]["hosts"]
    expected = hosts_of(data)
    assert set(written) == set(expected)
    pct = {key for key, row in data["containers"].items() if row["ansible_connection"] == PCT}
    assert pct == {"my-container", "second", "leased"}
    for key in pct:
        assert {name: written[key][name] for name in expected[key]} == expected[key]
        assert written[key]["ansible_host"] == "node-1.example.com"
        assert written[key]["ansible_pct_vmid"] == data["containers"][key]["vmid"]
    for key in ("direct", "splunk"):
        assert "ansible_connection" not in written[key]
        assert written[key]["ansible_host"] == {**data["containers"], **data["splunk_vm"]}[key]["ip"]


def test_the_fingerprint_is_the_one_that_the_store_has(applied: Path, rig: Rig) -> None:
    data = json.loads((applied / "ansible_inventory.json").read_text())
    with rig.store() as store:
        current = store.read()
    assert current is not None
    assert data["desired_state"]["etag"] == current.version.etag
    assert rig.yard.json("inventory", "show", "deployment")["freshness"] == "current"


def test_another_pool_is_a_change_in_place(applied: Path, rig: Rig) -> None:
    del applied
    pools = {**GUESTS["pools"], "other": {}}
    moved = edited(GUESTS, pools=pools, containers__second__pool_id="other")
    (rig.yard.folder / "moved.json").write_text(text_of(moved))
    planned = rig.yard.with_env(DEPLOYMENT_JSON_PATH="moved.json").json("plan", "deployment")
    assert {change["action"] for change in planned["changes"]} == {"create", "update"}
    assert planned["guard"]["refused"] == []


def test_keys_that_nothing_is_done_with_are_named_once_behind_everything(applied: Path, rig: Rig) -> None:
    del applied
    ended = rig.yard.run("plan", "deployment")
    assert ended.stderr.count("W-DEPLOYMENT-NOT-ACTED-ON") == 1
    assert "W-DEPLOYMENT-NOT-ACTED-ON" in ended.stderr.strip().splitlines()[-1]
    assert "acme_accounts" in ended.stderr
