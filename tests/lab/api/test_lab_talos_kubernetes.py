"""The Kubernetes API behind the Talos machines of the lab: where it is, who joins it, and when it is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.judges import find_judge
from tests.support.kubernetes import find_programs
from tests.support.lab import lab_client
from tests.support.talos import (
    Cluster,
    apply,
    boot_talos,
    free_network,
    network_plugin,
    open_kubernetes,
    put_image,
    read_kubeconfig,
    secured,
    start_cluster,
    wait_for_kubernetes,
    wait_for_stage,
    wait_until,
)

from pvelab.talos.machine import TalosMachine
from stackyard.base import process
from stackyard.clients.kubernetes import (
    KubernetesClient,
    KubernetesUnreachableError,
    ObjectReference,
    Patience,
)
from stackyard.talosapi.messages import pb

WITHOUT_NETWORK = {"network": {"cni": {"name": "none"}}}


async def read_node(client: KubernetesClient, name: str) -> tuple[str, dict[str, Any]]:
    """Return whether a node is ready, and the node."""
    node = await client.get(ObjectReference("v1", "Node", name))
    (condition,) = node["status"]["conditions"]
    return condition["status"], node


def address_of(machine: TalosMachine) -> str:
    assert machine.address is not None
    return machine.address[0]


async def test_a_bootstrapped_cluster_answers_at_every_control_plane_machine_and_at_the_shared_address() -> (
    None
):
    shared = f"{free_network()}.250.1"
    interface = {"interface": "eth0", "vip": {"ip": shared}}
    async with lab_client() as api:
        cluster = Cluster(machine={"network": {"interfaces": [interface]}})
        cluster, machines = await start_cluster(api, cluster, control_planes=3)
        config = await read_kubeconfig(machines[0], cluster)
        assert f"https://{address_of(machines[0])}:6443" in config
        for host in (*map(address_of, machines), shared):
            async with await open_kubernetes(machines[0], cluster, f"https://{host}:6443") as client:
                assert await client.read_version() == "v1.35.0"


async def test_nodes_join_and_are_ready_once_a_network_plugin_is_there() -> None:
    async with lab_client() as api:
        cluster, (one, worker) = await start_cluster(api, Cluster(settings=WITHOUT_NETWORK), workers=1)
        async with await open_kubernetes(one, cluster) as client:
            ready, node = await read_node(client, "node-100")
            assert ready == "False"
            assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.35.0"
            assert node["status"]["nodeInfo"]["osImage"] == "Talos (v1.12.1)"
            assert node["status"]["addresses"][0]["address"] == address_of(one)
            assert node["spec"]["taints"] == [
                {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
            ]
            assert [name for name, _ in one.list_unmet_conditions()] == ["nodeReady"]
            await client.apply(network_plugin())
            await wait_until(one, lambda: not (one.list_unmet_conditions() or worker.list_unmet_conditions()))
            assert (await read_node(client, "node-101"))[0] == "True"
            assert await api.done(await api.post("/nodes/pve1/qemu/101/status/stop")) == "OK"
            assert one.control_plane is not None
            view = one.control_plane.view
            await wait_until(one, lambda: view.find_node_problem("node-101") is not None)
            assert (await read_node(client, "node-101"))[0] == "Unknown"


async def test_objects_are_there_again_after_a_restart_of_the_machine_and_of_the_lab(tmp_path: Path) -> None:
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": "default"}}
    kept = ObjectReference("v1", "ConfigMap", "kept", "default")
    async with lab_client(data=tmp_path) as api:
        cluster, (machine,) = await start_cluster(api)
        async with await open_kubernetes(machine, cluster) as client:
            await client.apply({**wanted, "data": {"a": "b"}})
        assert await api.done(await api.post("/nodes/pve1/qemu/100/status/stop")) == "OK"
        async with KubernetesClient(client_access := client.access, Patience(away_s=0.0)) as again:
            with pytest.raises(KubernetesUnreachableError):
                await again.read_version()
        assert await api.done(await api.post("/nodes/pve1/qemu/100/status/start")) == "OK"
        started = api.world.machines.talos(100)
        assert started is not None
        await wait_for_stage(started, "running")
        await wait_for_kubernetes([started])
        async with KubernetesClient(client_access) as again:
            assert (await again.get(kept))["data"] == {"a": "b"}
    async with lab_client(data=tmp_path) as api:
        restarted = api.world.machines.talos(100)
        assert restarted is not None
        await wait_for_kubernetes([restarted])
        async with KubernetesClient(client_access) as again:
            assert (await again.get(kept))["metadata"]["managedFields"][0]["manager"] == "stackyard"


async def test_a_new_kubelet_image_in_the_configuration_changes_the_version_of_the_node() -> None:
    image = {"image": "ghcr.io/siderolabs/kubelet:v1.35.2"}
    async with lab_client() as api:
        cluster, (machine,) = await start_cluster(api)
        async with secured(machine, cluster) as client:
            config = cluster.config(kubelet=image)
            await client.call("ApplyConfiguration", pb.ApplyConfigurationRequest(data=config, mode=1))
        assert machine.control_plane is not None
        nodes = machine.control_plane.view
        await wait_until(machine, lambda: kubelet_of(nodes.nodes["node-100"]) == "v1.35.2")


def kubelet_of(node: Any) -> str:
    return str(node["status"]["nodeInfo"]["kubeletVersion"])


async def test_a_node_takes_addresses_outside_of_this_machine_through_a_forwarded_port() -> None:
    async with lab_client() as api:
        await put_image(api)
        machine = await boot_talos(api, ipconfig0="ip=10.9.0.7/24,gw=10.9.0.1")
        await wait_for_stage(machine, "maintenance")
        cluster = Cluster(endpoint="https://10.9.0.7:6443")
        await apply(machine, cluster.config())
        await wait_for_stage(machine, "running")
        async with secured(machine, cluster) as client:
            await client.call("Bootstrap")
        await wait_for_kubernetes([machine])
        (row,) = (await api.raw("GET", "/guests", base="/_lab")).json["guests"]
        server = f"https://{row['host']}:{row['ports']['6443']}"
        async with await open_kubernetes(machine, cluster, server) as kubernetes:
            assert await kubernetes.read_version() == "v1.35.0"


@pytest.mark.judges("kubectl")
async def test_kubectl_uses_the_kubeconfig_of_the_machine(tmp_path: Path) -> None:
    kubectl = find_judge("kubectl")
    async with lab_client() as api:
        cluster, (machine,) = await start_cluster(api)
        (tmp_path / "kubeconfig").write_text(await read_kubeconfig(machine, cluster))
        argv = (str(kubectl), "--kubeconfig", str(tmp_path / "kubeconfig"), "get", "nodes", "-o", "name")
        done = await process.run(process.Command(argv=argv, env=process.environment(), cwd=tmp_path))
        assert done.stdout.split() == ["node/node-100"]


@pytest.mark.judges("kube-apiserver", "etcd")
async def test_a_real_api_serves_the_same_and_keeps_its_objects(tmp_path: Path) -> None:
    programs = find_programs()
    async with lab_client(data=tmp_path, kubernetes=programs) as api:
        cluster, (machine,) = await start_cluster(api)
        await wait_until(machine, lambda: not machine.list_unmet_conditions())
        async with await open_kubernetes(machine, cluster) as client:
            await client.apply(network_plugin())
            ready, node = await read_node(client, "node-100")
            assert (ready, node["status"]["nodeInfo"]["osImage"]) == ("True", "Talos (v1.12.1)")
    async with lab_client(data=tmp_path, kubernetes=programs) as api:
        again = api.world.machines.talos(100)
        assert again is not None
        await wait_for_kubernetes([again])
        async with await open_kubernetes(again, cluster) as client:
            await client.get(ObjectReference("apps/v1", "DaemonSet", "network", "kube-system"))
