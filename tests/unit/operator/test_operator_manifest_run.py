"""Which nodes a request means, where they run, and what a host is told of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.site import write_site

from stackyard.base.errors import InvalidInputError, UsageError
from stackyard.operator.manifest_run import ManifestRun
from stackyard.operator.outcome import NodeOutcome, NodeStatus, Verb
from stackyard.operator.record import RunRecord, RunState
from stackyard.operator.record_store import RecordStore
from stackyard.operator.request import VerbRequest
from stackyard.sources.site import ConfigResolver


def node(name: str, vm_id: int, **more: Any) -> dict[str, Any]:
    size = {"cores": 1, "memory": 1024, "disk": 8}
    return {"name": name, "type": "vm", **size, "image": "debian-12", "vmid": vm_id, **more}


TREE = (
    # A child before its parent: the order of the list means nothing.
    node("leaf", 103, parent="inner"),
    node("inner", 102, type="pve", memory=2048, disk=16, parent="outer"),
    node("outer", 101, type="pve", memory=4096, disk=32),
    node("db", 104),
    node("web", 105, depends_on=["db"]),
)


@pytest.fixture
def resolver(tmp_path: Path) -> ConfigResolver:
    return ConfigResolver(write_site(tmp_path / "site"))


def host_of(resolver: ConfigResolver) -> str:
    return resolver.list_nodes()[0]


def undertaken(
    resolver: ConfigResolver, verb: Verb, *nodes: dict[str, Any], **plan_request: Any
) -> ManifestRun:
    text = json.dumps({"schema_version": 2, "name": "m", "nodes": list(nodes or TREE)})
    request = VerbRequest(text=text, host=host_of(resolver), **plan_request)
    return ManifestRun.of(verb, request, resolver)


def test_the_depth_counts_levels_of_the_graph(resolver: ConfigResolver) -> None:
    assert undertaken(resolver, Verb.CREATE, depth=1).chosen == {"outer", "db", "web"}
    assert undertaken(resolver, Verb.CREATE, depth=2).chosen == {"outer", "inner", "db", "web"}
    assert len(undertaken(resolver, Verb.CREATE).chosen) == 5
    # What is inside of a node goes with it, however deep.
    assert len(undertaken(resolver, Verb.DESTROY, depth=1).chosen) == 5


def test_a_target_comes_with_what_it_needs_and_goes_with_what_needs_it(resolver: ConfigResolver) -> None:
    assert undertaken(resolver, Verb.CREATE, targets=("leaf",)).chosen == {"leaf", "inner", "outer"}
    assert undertaken(resolver, Verb.CREATE, targets=("web",)).chosen == {"web", "db"}
    assert undertaken(resolver, Verb.DESTROY, targets=("db",)).chosen == {"web", "db"}
    assert undertaken(resolver, Verb.DESTROY, targets=("inner",)).chosen == {"leaf", "inner"}


def test_everything_inside_of_a_node_of_a_host_is_found_at_any_depth(resolver: ConfigResolver) -> None:
    found = undertaken(resolver, Verb.CREATE)
    assert {one.name for one in found.inside("outer")} == {"inner", "leaf"}
    assert found.inside("db") == ()
    assert [one.name for one in found.roots_on(host_of(resolver))] == ["outer", "db", "web"]
    assert found.is_whole(host_of(resolver))
    assert not undertaken(resolver, Verb.CREATE, targets=("web",)).is_whole(host_of(resolver))


def test_an_id_of_the_command_line_counts_and_two_of_the_same_are_refused(resolver: ConfigResolver) -> None:
    found = undertaken(resolver, Verb.CREATE, vm_ids={"db": 200})
    assert found.manifest.by_name["db"].entry["vmid"] == 200
    with pytest.raises(InvalidInputError):
        undertaken(resolver, Verb.CREATE, vm_ids={"db": 105})
    with pytest.raises(UsageError, match="no node 'dbb'"):
        undertaken(resolver, Verb.CREATE, vm_ids={"dbb": 200})


def test_an_id_that_was_given_stays_until_the_guest_is_gone(resolver: ConfigResolver) -> None:
    host = host_of(resolver)
    book = RecordStore(resolver.site.store, "m", host)
    for status, expected in ((NodeStatus.COMPLETED, 200), (NodeStatus.DESTROYED, 104)):
        book.write(
            RunRecord(
                manifest="m",
                host=host,
                verb=Verb.CREATE,
                state=RunState.DONE,
                started_at="2026-01-02T03:04:05Z",
                pid=1,
                vm_ids={"db": 200},
                nodes=(NodeOutcome(name="db", status=status, host=host),),
            )
        )
        assert undertaken(resolver, Verb.CREATE).manifest.by_name["db"].entry["vmid"] == expected
