"""The judge: talosctl against the Talos machines of the lab, from maintenance mode to a cluster and back."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.support.judges import find_judge
from tests.support.lab import lab_client
from tests.support.talos import (
    Cluster,
    boot_talos,
    network_plugin,
    open_kubernetes,
    put_image,
    secured,
    start_cluster,
    wait_for_stage,
    wait_until,
)

from stackyard.talosapi.messages import pb

pytestmark = pytest.mark.judges("talosctl")


async def talosctl(folder: Path, *arguments: str, fails: bool = False) -> str:
    """Run talosctl and return what it says."""
    env = {"HOME": str(folder), "TALOSCONFIG": str(folder / "talosconfig"), "PATH": os.environ["PATH"]}
    made = await asyncio.create_subprocess_exec(
        find_judge("talosctl"),
        *arguments,
        cwd=folder,
        env=env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(60):
            output, _ = await made.communicate()
    finally:
        if made.returncode is None:
            made.kill()
    text = output.decode()
    assert (made.returncode != 0) is fails, text
    return text


async def test_talosctl_reads_a_machine_in_maintenance_mode(tmp_path: Path) -> None:
    async with lab_client() as api:
        await put_image(api)
        machine = await boot_talos(api)
        await wait_for_stage(machine, "maintenance")
        assert machine.address is not None
        where = ("-n", machine.address[0], "-e", machine.address[0], "--insecure")
        assert "QEMU HARDDISK" in await talosctl(tmp_path, "get", "disks", *where)
        mac = (await api.get("/nodes/pve1/qemu/100/config"))["net0"].split("=")[1].split(",")[0]
        assert mac.lower() in await talosctl(tmp_path, "get", "links", *where)
        assert machine.address[0] in await talosctl(tmp_path, "get", "addresses", *where)
        said = await talosctl(tmp_path, "version", *where, fails=True)
        assert "code = Unimplemented desc = API is not implemented in maintenance mode" in said
        said = await talosctl(tmp_path, "get", "mc", *where, fails=True)
        assert "code = PermissionDenied desc = not authorized" in said


async def test_talosctl_makes_a_cluster_and_takes_it_apart(tmp_path: Path) -> None:
    async with lab_client() as api:
        await put_image(api)
        machines = [await boot_talos(api, number) for number in (100, 101, 102)]
        for machine in machines:
            await wait_for_stage(machine, "maintenance")
        one, other, worker = (machine.address[0] for machine in machines if machine.address)
        await talosctl(tmp_path, "gen", "config", "demo", f"https://{one}:6443", "--install-disk", "/dev/sda")
        await talosctl(tmp_path, "config", "endpoint", one)
        await talosctl(tmp_path, "config", "node", one)
        for address, name in ((worker, "worker"), (one, "controlplane"), (other, "controlplane")):
            await talosctl(tmp_path, "apply-config", "--insecure", "-n", address, "-f", f"{name}.yaml")
        for machine in machines:
            await wait_for_stage(machine, "running")
        assert "Tag:         v1.12.1" in await talosctl(tmp_path, "version")
        await talosctl(tmp_path, "bootstrap")
        said = await talosctl(tmp_path, "bootstrap", fails=True)
        assert "code = AlreadyExists desc = etcd data directory is not empty" in said
        await wait_until(machines[0], lambda: machines[1].etcd.is_healthy)
        members = await talosctl(tmp_path, "etcd", "members")
        assert "node-100" in members
        assert "node-101" in members
        assert "worker" in await talosctl(tmp_path, "get", "members")
        said = await talosctl(tmp_path, "etcd", "snapshot", "etcd.db")
        assert 'etcd snapshot saved to "etcd.db"' in said
        await talosctl(tmp_path, "kubeconfig", "kubeconfig")
        assert "admin@demo" in (tmp_path / "kubeconfig").read_text()
        assert "post check passed" in await talosctl(tmp_path, "reboot", "-n", worker)
        await talosctl(
            tmp_path,
            "reset",
            "-n",
            other,
            "--reboot",
            "--system-labels-to-wipe",
            "STATE",
            "--system-labels-to-wipe",
            "EPHEMERAL",
        )
        await wait_for_stage(machines[1], "maintenance")
        assert "node-101" not in await talosctl(tmp_path, "etcd", "members")


async def test_talosctl_health_names_what_is_missing_and_passes_once_a_network_plugin_is_there(
    tmp_path: Path,
) -> None:
    settings = {"network": {"cni": {"name": "none"}}}
    async with lab_client() as api:
        cluster, machines = await start_cluster(api, Cluster(settings=settings), workers=1)
        async with secured(machines[0], cluster) as client:
            wanted = pb.GenerateClientConfigurationRequest(
                roles=["os:admin"], crt_ttl=pb.Duration(seconds=3600)
            )
            made = (await client.call("GenerateClientConfiguration", wanted)).messages[0]
        (tmp_path / "talosconfig").write_bytes(made.talosconfig)
        one, worker = (machine.address[0] for machine in machines if machine.address)
        where = ("-n", one, "-e", one)
        said = await talosctl(tmp_path, "health", *where, "--wait-timeout", "1s", fails=True)
        assert "waiting for all k8s nodes to report: OK" in said
        assert "some nodes are not ready" in said
        async with await open_kubernetes(machines[0], cluster) as kubernetes:
            await kubernetes.apply(network_plugin())
        said = await talosctl(tmp_path, "health", *where, "--wait-timeout", "20s")
        assert "waiting for all k8s nodes to report schedulable: OK" in said
        nodes = ("--control-plane-nodes", one, "--worker-nodes", worker)
        said = await talosctl(tmp_path, "health", *where, "--server=false", *nodes, "--wait-timeout", "20s")
        assert "waiting for coredns to report ready: OK" in said
        said = await talosctl(
            tmp_path, "upgrade", *where, "--wait", "--image", "ghcr.io/siderolabs/installer:v1.12.2"
        )
        assert "post check passed" in said
        assert "v1.12.2" in await talosctl(tmp_path, "version", *where)
