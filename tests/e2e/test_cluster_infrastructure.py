"""The generated infrastructure of a Talos cluster, under a real engine against the lab.

STACKYARD_TEST_BPG names the binary of the real bpg/proxmox; without it, its part is skipped.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import real_engine
from tests.support.provider import Stack, driven, lab_api, require_bpg
from tests.support.resolved_clusters import make_cluster, make_node

from stackyard import lab
from stackyard.engine.version import Flavour
from stackyard.render.cluster import render_infrastructure
from stackyard.sources.cluster.image_names import name_image_file
from stackyard.sources.cluster.model import Cluster, ProxmoxAccess


@pytest.fixture
def running() -> Iterator[lab.Running]:
    with lab.running(nodes=("pve", "pve2")) as it:
        yield it


def cluster_of(running: lab.Running, folder: Path, version: str = "1.12.1") -> Cluster:
    """Return two VMs on two Proxmox nodes; the second has a TPM and no agent."""
    nodes = (
        make_node(1, vm={"has_agent": False}),
        make_node(2, host="pve2", vm={"has_tpm": True, "has_agent": False}),
    )
    return make_cluster(
        folder,
        talos_version=version,
        nodes=tuple(
            dataclasses.replace(one, image=dataclasses.replace(one.image, version=version)) for one in nodes
        ),
        proxmox=ProxmoxAccess(api_url=f"{running.url}/api2/json", node="pve", is_insecure=True),
        secrets={},
    )


def write(cluster: Cluster, folder: Path) -> None:
    """Write the folder as a user of the engine alone has it, with a state in a file."""
    for name, data in render_infrastructure(cluster).items():
        if name.startswith("tofu/") and name != "tofu/backend.tf":
            (folder / name.removeprefix("tofu/")).write_bytes(data)


async def configs(running: lab.Running) -> dict[str, dict[str, Any]]:
    async with lab_api(running) as api:
        return {
            "k8s-1": await api.get("/nodes/pve/qemu/101/config"),
            "k8s-2": await api.get("/nodes/pve2/qemu/102/config"),
        }


async def uptime_tasks(running: lab.Running) -> list[str]:
    """Return the tasks that stop or start a VM."""
    async with lab_api(running) as api:
        found = [await api.get(f"/nodes/{node}/tasks", {"limit": 500}) for node in running.nodes]
    kinds = ("qmstart", "qmstop", "qmreboot", "qmshutdown", "qmreset")
    return sorted(one["upid"] for tasks in found for one in tasks if one["type"] in kinds)


async def check_disk_images(stack: Stack, running: lab.Running, folder: Path, *, bpg: bool) -> None:
    """A node may begin with an image on its disk; a newer image leaves it alone."""
    cluster = cluster_of(running, folder)
    for version in ("1.12.1", "1.12.2"):
        image = dataclasses.replace(cluster.nodes[0].image, is_disk=True, version=version)
        write(
            dataclasses.replace(cluster, nodes=(dataclasses.replace(cluster.nodes[0], image=image),)), folder
        )
        said = await stack.apply(bpg=bpg)
        assert "1 destroyed" in said or version == "1.12.1"
        async with lab_api(running) as api:
            found = await api.get("/nodes/pve/qemu/101/config")
        assert found["boot"] == "order=scsi0"
        assert "ide2" not in found
    await stack.destroy(bpg=bpg)


def run(running: lab.Running, folder: Path, *, bpg: bool) -> None:
    async def scenario(stack: Stack) -> None:
        write(cluster_of(running, folder), folder)
        if not bpg:
            await stack.init()
        await stack.apply(bpg=bpg)
        check_configs(await configs(running))
        await check_bump(stack, running, folder, bpg=bpg)
        await stack.destroy(bpg=bpg)
        await check_disk_images(stack, running, folder, bpg=bpg)

    driven(real_engine(Flavour.TOFU), running, folder, scenario)


def check_configs(found: dict[str, dict[str, Any]]) -> None:
    one, two = found["k8s-1"], found["k8s-2"]
    assert one["boot"] == "order=scsi0;ide2"
    assert "talos-v1.12.1-ce4c980550dd-home.iso" in one["ide2"]
    assert "cloudinit" in one["ide0"]
    assert one["ipconfig0"] == "gw=10.0.0.1,ip=10.0.1.1/16"
    assert one["nameserver"] == "1.1.1.1 1.0.0.1"
    assert "tpmstate0" in two
    assert "tpmstate0" not in one
    assert "pre-enrolled-keys=0" in one["efidisk0"]


async def check_bump(stack: Stack, running: lab.Running, folder: Path, *, bpg: bool) -> None:
    """A newer version exchanges the disc in the drives, and no VM stops, reboots or is replaced."""
    before = await uptime_tasks(running)
    write(cluster_of(running, folder, "1.12.2"), folder)
    said = await stack.plan(status=2, bpg=bpg)
    assert "2 to add, 2 to change, 2 to destroy" in said
    assert 'talos_node["k8s-1"] will be updated in-place' in said
    await stack.apply(bpg=bpg)
    after = await configs(running)
    assert all("talos-v1.12.2-" in one["ide2"] for one in after.values())
    async with lab_api(running) as api:
        files = await api.get("/nodes/pve/storage/local/content", {"content": "iso"})
    assert [one["volid"] for one in files if "talos" in one["volid"]] == [
        "local:iso/talos-v1.12.2-ce4c980550dd-home.iso"
    ]
    state = json.loads(await stack.run("show", "-json"))
    urls = [one["values"].get("url", "") for one in state["values"]["root_module"]["resources"]]
    assert sum("v1.12.2" in url for url in urls) == 2
    assert await uptime_tasks(running) == before


def variants(folder: Path) -> dict[str, Cluster]:
    """Return clusters of every shape that changes the code."""
    passphrases = {"state_encryption_passphrase": "a" * 16, "state_encryption_passphrase_previous": "b" * 16}
    disk = dataclasses.replace(make_node(1).image, is_disk=True)
    return {
        "one": make_cluster(folder, nodes=1),
        "hundred": make_cluster(folder, nodes=100),
        "metal": make_cluster(folder, proxmox=None, nodes=[make_node(1, vm=None)], state=None),
        "vlan": make_cluster(folder, network={"vlan_tag": 20, "is_tagged_by_proxmox": False}),
        "disk": make_cluster(folder, nodes=[make_node(1, image=disk), make_node(2, host="pve2")]),
        "rotation": make_cluster(folder, secrets=passphrases),
        "encryption": make_cluster(
            folder, secrets={**passphrases, "state_encryption_passphrase_previous": "none"}
        ),
        "decryption": make_cluster(folder, secrets={"state_encryption_passphrase_previous": "b" * 16}),
    }


@pytest.mark.tofu
@pytest.mark.timeout(120)
@pytest.mark.parametrize("bpg", [False, pytest.param(True, marks=pytest.mark.bpg)])
def test_every_shape_is_formatted_and_valid(running: lab.Running, tmp_path: Path, bpg: bool) -> None:
    if bpg:
        require_bpg()

    async def scenario(stack: Stack) -> None:
        for name, cluster in variants(tmp_path).items():
            folder = tmp_path / name
            folder.mkdir()
            checksums = {name_image_file(cluster, node.image): "ab" * 32 for node in cluster.nodes}
            for path, data in render_infrastructure(cluster, checksums=checksums).items():
                if path.startswith("tofu/"):
                    (folder / path.removeprefix("tofu/")).write_bytes(data)
            one = dataclasses.replace(
                stack, folder=folder, more={"TF_DATA_DIR": str(tmp_path / ".terraform")}
            )
            one.variables = {key: "a" * 16 for key in cluster.secrets if key.startswith("state_")}
            await one.run("fmt", "-check", "-diff", "-recursive")
            if not bpg:
                await one.run("init", "-backend=false", "-input=false", "-no-color")
            assert "Success" in await one.run("validate", "-no-color", bpg=bpg), name

    driven(real_engine(Flavour.TOFU), running, tmp_path, scenario)


@pytest.mark.tofu
@pytest.mark.timeout(120)
def test_nodes_are_made_and_a_newer_image_only_exchanges_the_disc(
    running: lab.Running, tmp_path: Path
) -> None:
    run(running, tmp_path, bpg=False)


@pytest.mark.bpg
@pytest.mark.timeout(300)
def test_the_real_provider_does_the_same(running: lab.Running, tmp_path: Path) -> None:
    require_bpg()
    run(running, tmp_path, bpg=True)
