"""A member leaves etcd by its own number, whoever has its address by now."""

from __future__ import annotations

from pathlib import Path

from tests.support.lab import lab_client
from tests.support.resolved_clusters import make_cluster
from tests.support.talos import start_cluster, wait_until
from tests.support.talos_nodes import Reports, access_to, node_of

from stackyard.bootstrap.changes.removal import NodeRemoval
from stackyard.bootstrap.talos.members import EtcdMember
from stackyard.clients.kubernetes import KubernetesClient


async def never() -> KubernetesClient:
    raise AssertionError("Kubernetes is not asked")


async def test_another_node_at_the_address_of_a_member_does_not_leave_etcd(tmp_path: Path) -> None:
    async with lab_client() as api:
        cluster, machines = await start_cluster(api)
        await wait_until(machines[0], lambda: all(one.etcd.is_healthy for one in machines))
        nodes = tuple(node_of(machine) for machine in machines)
        removal = NodeRemoval(
            cluster=make_cluster(tmp_path, nodes=nodes),
            access=access_to(cluster, timeout_s=2.0),
            open_client=never,
            timeout_s=10.0,
        )
        gone = EtcdMember(number=7, name="k8s-gone", addresses=frozenset((str(nodes[-1].address),)))
        await removal.leave_etcd(gone, Reports())
        assert all(machine.etcd.is_member for machine in machines)
