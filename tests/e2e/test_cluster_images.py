"""Images of Talos clusters, from the lab's image factory through Proxmox nodes to machines that boot.

STACKYARD_TEST_BPG names the binary of the real bpg/proxmox; without it, its part is skipped.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.cli import Ended, stackyard
from tests.support.engine import real_engine
from tests.support.provider import Stack, driven, lab_api, require_bpg
from tests.support.resolved_clusters import make_cluster, make_node
from tests.support.stacks import git
from tests.support.talos import WITH_AGENT, free_network, wait_for_stage

from stackyard import lab
from stackyard.engine.version import Flavour
from stackyard.path.clusters.image_lock import read_image_lock
from stackyard.path.clusters.image_pins import pin_images
from stackyard.render.cluster import render_infrastructure
from stackyard.secrets import new_identity
from stackyard.sources.cluster.model import Cluster, ProxmoxAccess
from stackyard.talosapi.schematic import schematic_id

NETWORK = free_network()
IMAGE_PATHS = "/image/*"


@pytest.fixture
def running() -> Iterator[lab.Running]:
    with lab.running(nodes=("pve",), factory_port=0, guest_network=f"{NETWORK}.0.0/16") as it:
        yield it


def cluster_of(running: lab.Running, folder: Path, *, is_disk: bool) -> Cluster:
    """Return one node that boots an image of the lab's factory."""
    node = make_node(1, vm={"has_agent": False}, address=IPv4Address(f"{NETWORK}.77.1"))
    image = dataclasses.replace(node.image, factory=str(running.factory_url), is_disk=is_disk)
    return make_cluster(
        folder,
        nodes=[dataclasses.replace(node, image=image)],
        network={"node_cidr": IPv4Network(f"{NETWORK}.0.0/16"), "gateway": IPv4Address(f"{NETWORK}.0.1")},
        proxmox=ProxmoxAccess(api_url=f"{running.url}/api2/json", node="pve", is_insecure=True),
        schematics={schematic_id(WITH_AGENT): WITH_AGENT},
        secrets={},
    )


def write(cluster: Cluster) -> None:
    """Write the code as a user of the engine alone has it, with a state in a file."""
    checksums = read_image_lock(cluster).checksums
    for name, data in render_infrastructure(cluster, checksums=checksums).items():
        if name.startswith("tofu/") and name != "tofu/backend.tf":
            (cluster.folder / name.removeprefix("tofu/")).write_bytes(data)


def wait_for_maintenance(running: lab.Running, vm_id: int = 101) -> None:
    """Wait until a VM answers the Talos API in maintenance mode."""
    machine = running.on_loop(lambda: running.world.machines.talos(vm_id))
    assert machine is not None, "the VM does not boot Talos"
    waiting = wait_for_stage(machine, "maintenance")
    asyncio.run_coroutine_threadsafe(waiting, running.loop).result(30)


async def check_wrong_images(stack: Stack, running: lab.Running, cluster: Cluster, *, bpg: bool) -> None:
    """A pinned image that arrives otherwise is refused by the node, and nothing is left of it."""
    (pinned,) = read_image_lock(cluster).checksums.values()
    for how, expected in {"wrong-bytes": f"!= expect '{pinned}'", "half-download": "download failed"}.items():
        fault = running.add_fault("factory", how=how, path=IMAGE_PATHS, method="GET")
        said = await stack.run("apply", "-auto-approve", "-input=false", "-no-color", status=1, bpg=bpg)
        assert expected in " ".join(said.replace("│", "").split())
        running.remove_fault(fault)
        async with lab_api(running) as api:
            assert await api.get("/nodes/pve/storage/local/content") == []


def run_pinned(running: lab.Running, folder: Path, *, bpg: bool) -> None:
    async def scenario(stack: Stack) -> None:
        cluster = cluster_of(running, folder, is_disk=True)
        assert (await pin_images(cluster)).added == ("talos-v1.12.1-ce4c980550dd-home.qcow2",)
        write(cluster)
        if not bpg:
            await stack.init()
        await stack.run("fmt", "-check", "-diff")
        await check_wrong_images(stack, running, cluster, bpg=bpg)
        await stack.apply(bpg=bpg)
        await asyncio.to_thread(wait_for_maintenance, running)
        await stack.destroy(bpg=bpg)

    driven(real_engine(Flavour.TOFU), running, folder, scenario)


def run_pin_later(running: lab.Running, folder: Path, *, bpg: bool) -> None:
    async def scenario(stack: Stack) -> None:
        cluster = cluster_of(running, folder, is_disk=False)
        # Registered, and not pinned.
        await pin_images(cluster)
        (cluster.infrastructure / "images.lock.json").unlink()
        write(cluster)
        if not bpg:
            await stack.init()
        await stack.apply(bpg=bpg)
        await asyncio.to_thread(wait_for_maintenance, running)
        await pin_images(cluster)
        write(cluster)
        assert "image_checksums" in (folder / "terraform.tfvars").read_text()
        await stack.unchanged(bpg=bpg)
        await stack.destroy(bpg=bpg)

    driven(real_engine(Flavour.TOFU), running, folder, scenario)


PROVIDERS = pytest.mark.parametrize("bpg", [False, pytest.param(True, marks=pytest.mark.bpg)])


@pytest.mark.tofu
@pytest.mark.timeout(120)
@PROVIDERS
def test_a_node_refuses_a_wrong_image_and_a_vm_boots_from_the_pinned_disk_image(
    running: lab.Running, tmp_path: Path, bpg: bool
) -> None:
    if bpg:
        require_bpg()
    run_pinned(running, tmp_path, bpg=bpg)


@pytest.mark.tofu
@pytest.mark.timeout(120)
@PROVIDERS
def test_an_image_that_is_pinned_after_an_apply_changes_nothing(
    running: lab.Running, tmp_path: Path, bpg: bool
) -> None:
    if bpg:
        require_bpg()
    run_pin_later(running, tmp_path, bpg=bpg)


class Folder:
    """A cluster of one node as a user has it, in a git repository."""

    def __init__(self, running: lab.Running, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        git(folder, "init", "--quiet")
        (folder / "age.key").write_text(f"{new_identity()[1]}\n")
        name, secret = running.api_token.split("=", 1)
        cluster = {
            "cluster_name": "home",
            "node_cidr": f"{NETWORK}.0.0/16",
            "cluster_api_addr": f"{NETWORK}.77.250",
            "talos_version": "1.12.1",
            "talos_factory": running.factory_url,
            "talos_schematic": {"extensions": ["siderolabs/iscsi-tools"]},
            "proxmox_api_url": f"{running.url}/api2/json",
            "proxmox_node": "pve",
            "proxmox_insecure": True,
            "proxmox_api_token_id": name,
            "proxmox_api_token_secret": secret,
        }
        node = {
            "name": "k8s-1",
            "address": f"{NETWORK}.77.1",
            "controller": True,
            "disk": "/dev/sda",
            "mac_addr": "bc:24:11:00:00:01",
            "vm_id": 101,
        }
        (folder / "cluster.yaml").write_text(yaml.safe_dump(cluster))
        (folder / "nodes.yaml").write_text(yaml.safe_dump({"nodes": [node]}))

    @property
    def lock(self) -> Any:
        return json.loads((self.folder / "infrastructure/images.lock.json").read_text())["images"]

    def run(self, *arguments: str, status: int = 0) -> Ended:
        env = {"STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path), "HOME": str(self.folder)}
        ended = stackyard(*arguments, cwd=self.folder, env=env)
        assert ended.status == status, ended.stdout + ended.stderr
        return ended


@pytest.mark.timeout(120)
def test_images_are_listed_pinned_and_held_against_their_pins(running: lab.Running, tmp_path: Path) -> None:
    folder = Folder(running, tmp_path / "home")
    (one,) = folder.run("cluster", "images", "--json").document["images"]
    assert one["is_in_factory"] is False
    assert (one["extensions"], one["nodes"], one["hosts"]) == (["siderolabs/iscsi-tools"], ["k8s-1"], ["pve"])

    said = folder.run("cluster", "images", "--pin")
    assert f"pinned {one['file_name']}" in said.stdout
    assert folder.run("cluster", "images", "--json").document["images"][0]["is_in_factory"] is True
    pin = folder.lock[one["file_name"]]["sha256"]

    folder.run("cluster", "configure", "--no-init")
    assert pin in (folder.folder / "infrastructure/tofu/terraform.tfvars").read_text()
    assert "nothing was written" in folder.run("cluster", "configure", "--no-init").stdout

    fault = running.add_fault("factory", how="wrong-bytes", path=IMAGE_PATHS, method="GET")
    refused = folder.run("cluster", "images", "--pin", status=1)
    assert "E-CLUSTER-IMAGE-CHANGED" in refused.stderr
    assert pin in refused.stderr
    assert folder.lock[one["file_name"]]["sha256"] == pin
    assert "Did you mean" in folder.run("cluster", "images", "--repin", "talos-v1.12.1.iso", status=64).stderr
    folder.run("cluster", "images", "--repin", one["file_name"])
    assert folder.lock[one["file_name"]]["sha256"] != pin
    running.remove_fault(fault)

    running.add_fault("factory", how="down")
    listed = folder.run("cluster", "images", "--json").document
    assert listed["images"][0]["is_in_factory"] is None
    assert "broke the connection" in listed["warnings"][0]
    assert "E-FACTORY-UNREACHABLE" in folder.run("cluster", "images", "--pin", status=69).stderr


@pytest.mark.tofu
@pytest.mark.timeout(120)
def test_an_apply_registers_the_schematics_of_the_images_that_it_downloads(
    running: lab.Running, tmp_path: Path
) -> None:
    folder = Folder(running, tmp_path / "home")
    folder.run("cluster", "configure", "--no-init")
    # Nobody has registered the schematic, and this machine does not reach the factory.
    fault = running.add_fault("factory", how="down", path="/schematics")
    failed = folder.run("apply", "cluster:home", "--yes", "--events", status=1)
    assert any("not registered from here" in one.get("text", "") for one in failed.events)
    running.remove_fault(fault)

    # An inventory has no address of this machine, which is what guests of this lab have.
    folder.run("infra", "apply-auto", "--no-verify")
    wait_for_maintenance(running)
