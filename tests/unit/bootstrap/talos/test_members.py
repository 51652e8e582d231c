"""Members of etcd that no node is, whoever has their addresses by now."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest

from stackyard.bootstrap.talos.members import (
    EtcdMember,
    NodeEtcd,
    RemovedMemberError,
    check_members,
    list_strange,
)
from stackyard.sources.cluster.model import ClusterNode, TalosImage


def node(name: str, address: str) -> ClusterNode:
    return ClusterNode(
        name=name,
        address=IPv4Address(address),
        is_controller=True,
        disk="/dev/sda",
        mac_addr="bc:24:11:00:00:01",
        image=TalosImage(schematic_id="0" * 64, version="1.12.1"),
    )


def member(number: int, name: str, address: str) -> EtcdMember:
    return EtcdMember(number=number, name=name, addresses=frozenset((address,)))


def running(number: int, name: str, address: str, *others: EtcdMember) -> NodeEtcd:
    own = member(number, name, address)
    return NodeEtcd(node=node(name, address), number=number, is_voter=True, members=(own, *others))


GONE = member(3, "k8s-2", "10.0.0.13")


def test_a_member_whose_address_another_node_has_since_is_strange() -> None:
    first = running(1, "k8s-1", "10.0.0.12", GONE)
    fresh = NodeEtcd(node=node("k8s-9", "10.0.0.13"))
    assert list_strange((first, fresh)) == (GONE,)
    with pytest.raises(RemovedMemberError, match="k8s-2"):
        check_members((first, fresh))
    own = running(4, "k8s-9", "10.0.0.13", GONE)
    assert list_strange((first, own)) == (GONE,)


def test_before_vms_are_changed_a_member_that_runs_under_a_name_of_before_is_an_error() -> None:
    first = running(1, "k8s-1", "10.0.0.12", GONE)
    renamed = NodeEtcd(node=node("k8s-9", "10.0.0.13"), number=3, members=first.members)
    check_members((first, renamed))
    with pytest.raises(RemovedMemberError, match="k8s-2"):
        check_members((first, renamed), is_before_change=True)


def test_with_a_node_unseen_a_member_of_no_known_name_and_address_is_an_error() -> None:
    unseen = NodeEtcd(node=node("k8s-3", "10.0.0.14"), reason="no answer")
    with pytest.raises(RemovedMemberError, match="k8s-2"):
        check_members((running(1, "k8s-1", "10.0.0.12", GONE), unseen))
    elsewhere = member(4, "k8s-3", "10.9.0.14")
    check_members((running(1, "k8s-1", "10.0.0.12", elsewhere), unseen))


def test_members_on_another_network_are_known_by_their_numbers_and_names() -> None:
    rows = (member(1, "k8s-1", "10.9.0.12"), member(2, "k8s-3", "10.9.0.14"))
    first = NodeEtcd(node=node("k8s-1", "10.0.0.12"), number=1, members=rows)
    joining = NodeEtcd(node=node("k8s-3", "10.0.0.14"))
    assert list_strange((first, joining)) == ()
    # A member has no name before it starts.
    nameless = NodeEtcd(node=first.node, number=1, members=(rows[0], member(2, "", "10.9.0.14")))
    assert list_strange((nameless, joining)) == ()
    assert [row.number for row in list_strange((nameless,))] == [2]
