"""Create, destroy and test over a manifest on a lab: one plan a host, each node on its own from there."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.operating import Ground, Played, all_well, guest, laid_out, manifest_text
from tests.support.site_store import overwrite

from stackyard.base.errors import UsageError
from stackyard.guard import GuardRefusedError
from stackyard.operator.outcome import NodeStatus, RunOutcome, Verb
from stackyard.operator.record import RunState
from stackyard.operator.request import VerbRequest
from stackyard.sources.manifest.model import Manifest

IMAGE = "proxmox_download_file.image_debian-12"

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with laid_out(tmp_path_factory.mktemp("operator")) as made:
        yield made


@pytest.fixture
def ground(shared: Ground, monkeypatch: pytest.MonkeyPatch) -> Ground:
    return shared.enter(monkeypatch)


def statuses(outcome: RunOutcome) -> dict[str, str]:
    return {node.name: node.status.value for node in outcome.nodes}


def test_create_can_be_repeated_and_configures_guests_that_are_up(ground: Ground) -> None:
    text, guest_actions = manifest_text("again", guest("one", 1000), guest("two", 1001)), Played()
    first = ground.run("create", text, guest_actions)
    assert (first.success, statuses(first)) == (True, {"one": "completed", "two": "completed"})
    assert {node.vm_id for node in first.nodes} == {1000, 1001}
    assert all(node.created and node.address for node in first.nodes)
    assert all([phase.name for phase in node.phases][:1] == ["create_guest"] for node in first.nodes)

    at_once: list[int] = []

    async def work(name: str) -> None:
        at_once.append(at_once[-1] + 1 if at_once else 1)
        await asyncio.sleep(0)
        at_once.append(at_once[-1] - 1)

    guest_actions.on_configure = work
    again = ground.run("create", text, guest_actions, parallel=1)
    assert again.success
    assert max(at_once) == 1, "no more are worked on at once than is said"
    assert not any(node.created for node in again.nodes), "what was there before is not this run's"
    assert (
        sorted(entry[:2] for entry in guest_actions.log)
        == [("configure", "one")] * 2 + [("configure", "two")] * 2
    )
    assert ground.guests(above=1000, below=1010) == {1000: "one", 1001: "two"}

    assert ground.record("again").state is RunState.DONE
    assert [config["tags"] for config in tagged(ground, 1000, 1001)] == ["stackyard.again"] * 2
    with pytest.raises(GuardRefusedError) as refused:
        ground.run("create", manifest_text("again", guest("two", 1001)))
    assert refused.value.remedy.endswith("stackyard apply manifest:again -H lab --allow-destroy one")
    statuses_now = {node.name: node.status for node in ground.record("again").nodes}
    assert statuses_now == {"two": NodeStatus.COMPLETED}, "a run that changed nothing forgets nothing"
    assert ground.run("destroy", text).success
    assert ground.guests(above=1000, below=1010) == {}


def test_a_destroy_touches_nothing_beyond_what_was_confirmed(ground: Ground) -> None:
    ground.run("create", manifest_text("thinned", guest("one", 1220), guest("two", 1221)), Played())
    fewer = manifest_text("thinned", guest("one", 1220))
    with pytest.raises(GuardRefusedError, match="two"):
        ground.run("destroy", fewer, confirmed=frozenset({"one"}))
    assert ground.guests(above=1220, below=1230) == {1220: "one", 1221: "two"}
    ended = ground.run("destroy", fewer, confirmed=frozenset({"one", "two"}))
    assert statuses(ended) == {"one": "destroyed", "two": "destroyed"}
    assert ground.guests(above=1220, below=1230) == {}


def tagged(ground: Ground, *vm_ids: int) -> list[dict[str, str]]:
    return [ground.yard.guests()[vm_id]["config"] for vm_id in vm_ids]


def test_stop_begins_nothing_new_and_the_next_create_goes_on(ground: Ground) -> None:
    nodes = (guest("a", 1010), guest("b", 1011, depends_on=["a"]), guest("c", 1012, depends_on=["b"]))
    text = manifest_text("stopped", *nodes, on_error="stop")
    guest_actions = Played(fails={"a"})
    failed = ground.run("create", text, guest_actions)
    assert not failed.success
    assert failed.error == "a: apply_spec: no room"
    assert statuses(failed)["a"] == "failed"
    assert {node.cause for node in failed.nodes if node.name != "a"} == {"a"}
    assert [entry[1] for entry in guest_actions.log] == ["a"]
    # What is said of the others is what the cluster has.
    there = ground.guests(above=1010, below=1020)
    for node in failed.nodes[1:]:
        is_told = node.status in (NodeStatus.STARTED, NodeStatus.CREATING)
        assert node.created == is_told
        assert ("not begun" in str(node.error)) == (not is_told)
        assert is_told or node.vm_id not in there
        assert node.status is not NodeStatus.STARTED or node.vm_id in there
    record = ground.record("stopped")
    assert record.state is RunState.FAILED
    # The id and the address of a node that failed stay known.
    [known] = [node for node in record.nodes if node.name == "a"]
    assert (known.vm_id, bool(known.address)) == (1010, True)

    healed = ground.run("create", text, Played())
    assert (healed.success, set(statuses(healed).values())) == (True, {"completed"})
    assert ground.guests(above=1010, below=1020) == {1010: "a", 1011: "b", 1012: "c"}


@pytest.mark.soak
def test_a_guest_that_was_made_before_the_run_stopped_is_never_said_not_to_be_begun(ground: Ground) -> None:
    nodes = (guest("first", 1200), guest("made", 1201, depends_on=["first"]))

    async def work(name: str) -> None:
        # The engine makes both guests at once: the first one fails only when the other one is there.
        while 1201 not in ground.guests(above=1200, below=1210):
            await asyncio.sleep(0.01)

    text = manifest_text("truth", *nodes, on_error="stop")
    guest_actions = Played(fails={"first"}, on_configure=work)
    outcome = ground.run("create", text, guest_actions)
    [told] = [node for node in outcome.nodes if node.name == "made"]
    assert ground.guests(above=1200, below=1210).keys() == {1200, 1201}
    assert told.status in (NodeStatus.STARTED, NodeStatus.CREATING)
    assert "not begun" not in str(told.error)
    assert "first failed first" in str(told.error)
    assert (told.created, told.cause, told.vm_id) == (True, "first", 1201)
    [kept] = [node for node in ground.record("truth").nodes if node.name == "made"]
    assert (kept.status, kept.error) == (told.status, told.error)
    assert ground.run("destroy", text).success


def test_rollback_takes_the_failing_node_and_nothing_that_was_there_before(ground: Ground) -> None:
    old = guest("old", 1020)
    assert ground.run("create", manifest_text("back", old)).success
    text = manifest_text("back", old, guest("new", 1021), guest("bad", 1022), on_error="rollback")
    outcome = ground.run("create", text, Played(fails={"bad"}))
    assert not outcome.success
    assert [phase.name for phase in outcome.phases][-1] == "rollback_nodes"
    assert statuses(outcome)["bad"] == "failed"
    assert ground.guests(above=1020, below=1030) == {1020: "old"}, "the failing node is gone too"
    assert not any(node.created for node in outcome.nodes)
    assert [name for name in ground.in_state("back") if "old" not in name] == [IMAGE], (
        "nor its cloud-init data"
    )


def test_continue_skips_dependents_alone_and_names_the_cause(ground: Ground) -> None:
    nodes = (
        guest("a", 1030, type="pve", memory=4096, disk=32),
        guest("inside", 100, parent="a"),
        guest("b", 1031, depends_on=["a"]),
        guest("c", 1032),
        guest("broken", 1033),
    )

    async def work(name: str) -> None:
        if name == "broken":
            raise RuntimeError("a defect of somebody's")

    guest_actions = Played(fails={"a"}, on_configure=work)
    outcome = ground.run("create", manifest_text("going", *nodes, on_error="continue"), guest_actions)
    assert statuses(outcome) == {
        "a": "failed",
        "inside": "skipped",
        "b": "started",
        "c": "completed",
        "broken": "failed",
    }
    by_name = {node.name: node for node in outcome.nodes}
    assert (by_name["b"].cause, by_name["inside"].cause) == ("a", "a")
    # The engine made its guest, whose turn to be configured never came.
    assert by_name["b"].error == "Its guest was created, and not configured: a failed first."
    assert (by_name["b"].created, by_name["b"].vm_id) == (True, 1031)
    assert by_name["c"].error is None
    assert by_name["broken"].error == "RuntimeError: a defect of somebody's"
    assert not outcome.success
    assert sorted(entry[1] for entry in guest_actions.log) == ["a", "broken", "c"]
    assert {node.name for node in ground.record("going").nodes} == set(by_name), "nothing of it is lost"


@pytest.mark.parametrize("on_error", ["continue", "rollback"])
def test_a_guest_that_cannot_be_made_does_not_stop_the_others(ground: Ground, on_error: str) -> None:
    first = 1040 if on_error == "continue" else 1045
    text = manifest_text(f"half-{on_error}", guest("good", first), guest("bad", first + 1), on_error=on_error)
    fault = ground.yard.running.add_fault(
        "task", task="qmcreate", id=str(first + 1), text="no space left on device"
    )
    try:
        outcome = ground.run("create", text)
    finally:
        ground.yard.running.remove_fault(fault)
    assert statuses(outcome)["bad"] == "failed"
    assert "no space left on device" in str(outcome.error)
    if on_error == "continue":
        assert statuses(outcome)["good"] == "completed"
        assert ground.run("create", text).success, "the next create goes on from what is there"
    else:
        assert ground.guests(above=first, below=first + 5) == {}


def test_a_guest_that_never_answers_fails_alone_and_in_its_time(ground: Ground) -> None:
    silent = guest("silent", 1121, verify={"timeout_s": 0})
    text = manifest_text("mute", guest("good", 1120), silent, on_error="continue", timeout_buffer=1)
    fault = ground.yard.running.add_fault("agent-silent", vmid=1121)
    try:
        outcome = ground.run("create", text)
    finally:
        ground.yard.running.remove_fault(fault)
    assert statuses(outcome) == {"good": "completed", "silent": "failed"}
    failed = next(node for node in outcome.nodes if node.name == "silent")
    assert "not up after 1 s: waiting for its agent" in str(failed.error), "the buffer is given on top"
    assert failed.vm_id == 1121
    assert ground.run("create", text).success


def test_test_verifies_every_node_and_removes_what_it_made_whatever_it_finds(ground: Ground) -> None:
    text = manifest_text("tried", guest("one", 1050), guest("two", 1051))
    guest_actions = Played(wrong={"two"})
    outcome = ground.run("test", text, guest_actions)
    assert not outcome.success
    assert "htop is missing" in str(outcome.error)
    assert sorted(entry[1] for entry in guest_actions.log if entry[0] == "inspect") == ["one", "two"]
    assert [phase.name for phase in outcome.phases] == [
        "plan_guests",
        "create_nodes",
        "verify_nodes",
        "destroy_nodes",
    ]
    assert ground.guests(above=1050, below=1060) == {}
    passed = ground.run("test", text)
    assert (passed.success, set(statuses(passed).values())) == (True, {"destroyed"})


def test_test_leaves_what_was_there_before_and_what_it_is_told_to_keep(ground: Ground) -> None:
    old, new = guest("old", 1060), guest("new", 1061)
    assert ground.run("create", manifest_text("kept", old)).success
    assert ground.run("test", manifest_text("kept", old, new)).success
    assert ground.guests(above=1060, below=1070) == {1060: "old"}
    kept = manifest_text("kept", old, new, cleanup_on_failure=False)
    assert not ground.run("test", kept, Played(fails={"new"})).success
    assert ground.guests(above=1060, below=1070) == {1060: "old", 1061: "new"}


def test_some_nodes_can_be_meant_and_given_other_ids(ground: Ground) -> None:
    nodes = (guest("a", 1070), guest("b", 1071, depends_on=["a"]), guest("c", 1072))
    text = manifest_text("some", *nodes)
    outcome = ground.run("create", text, targets=("b",), vm_ids={"b": 1079})
    assert (outcome.success, statuses(outcome)) == (True, {"a": "completed", "b": "completed"})
    assert ground.guests(above=1070, below=1080) == {1070: "a", 1079: "b"}
    # The id stays as it was given, without a word, as long as the guest is there.
    assert ground.run("create", text).success
    assert ground.guests(above=1070, below=1080) == {1070: "a", 1072: "c", 1079: "b"}
    gone = ground.run("destroy", text, targets=("a",))
    assert statuses(gone) == {"a": "destroyed", "b": "destroyed"}, "what depends on a node goes with it"
    assert ground.guests(above=1070, below=1080) == {1072: "c"}
    with pytest.raises(UsageError, match="no node 'd'"):
        ground.run("create", text, targets=("d",))


def test_destroy_needs_neither_the_record_nor_the_manifest_and_names_orphans(ground: Ground) -> None:
    text = manifest_text("lost", guest("one", 1080))
    assert ground.run("create", text).success
    overwrite(ground.yard.folder / ".stackyard", ground.book("lost").key, None)
    stray = {"name": "stray", "tags": "stackyard.lost;other", "memory": 512, "cores": 1}
    plant(ground, 1085, stray)
    outcome = ground.yard.json("destroy", "-M", "lost", "-H", "lab", "--yes", "--skip-preflight")
    assert outcome["success"] is True
    assert outcome["orphans"] == ["stray (1085 on pve1)"]
    assert ground.guests(above=1080, below=1090) == {1085: "stray"}, "what no state knows is named, not taken"
    never = ground.yard.json("destroy", "-M", "never", "-H", "lab", "--yes", status=64)
    assert "no run of that name" in never["error"]["detail"]


def plant(ground: Ground, vm_id: int, config: dict[str, object]) -> None:
    """Put a guest into the lab that nobody manages."""
    world = ground.yard.running.world

    def put() -> None:
        with world.store.transaction():
            known = next(iter(world.guests.all().values()))
            world.store.put("guests", str(vm_id), {**known, "vmid": vm_id, "config": config})

    ground.yard.running.on_loop(put)


def test_a_guest_that_cannot_be_removed_is_named_and_the_next_destroy_goes_on(ground: Ground) -> None:
    text = manifest_text("sticky", guest("good", 1140), guest("bad", 1141))
    assert ground.run("create", text).success
    fault = ground.yard.running.add_fault("task", task="qmdestroy", id="1141", text="dataset is busy")
    try:
        outcome = ground.run("destroy", text)
    finally:
        ground.yard.running.remove_fault(fault)
    assert (outcome.success, statuses(outcome)) == (False, {"good": "destroyed", "bad": "failed"})
    assert ground.guests(above=1140, below=1150) == {1141: "bad"}
    assert ground.record("sticky").state is RunState.FAILED
    assert ground.run("destroy", text).success
    assert ground.guests(above=1140, below=1150) == {}


def test_nodes_inside_of_a_node_are_run_there_and_a_silent_one_is_no_success(ground: Ground) -> None:
    outer = guest("outer", 1090, type="pve", memory=4096, disk=32)
    text = manifest_text(
        "deep", outer, guest("leaf", 100, parent="outer"), guest("peer", 1091, depends_on=["outer"])
    )
    guest_actions = Played()
    outcome = ground.run("test", text, guest_actions)
    assert outcome.success, outcome
    leaf = next(node for node in outcome.nodes if node.name == "leaf")
    assert (leaf.depth, leaf.host, leaf.address, leaf.status) == (
        1,
        "outer",
        "10.9.9.9",
        NodeStatus.DESTROYED,
    )
    asked = [
        entry[0] for entry in guest_actions.log if entry[1] == "outer" and entry[0].startswith("delegate")
    ]
    # What is inside of a node goes with it: nobody is asked to destroy it first.
    assert asked == ["delegate create", "delegate verify"]

    def silent(verb: object, subtree: object, request: object) -> RunOutcome:
        del subtree, request
        return RunOutcome(
            verb=outcome.verb, manifest="x", host="x", success=True, started_at="", duration_s=0.0
        )

    quiet = ground.run("test", text, Played(inside=silent))
    assert not quiet.success
    assert "said nothing" in str(quiet.error)
    assert ground.guests(above=1090, below=1100) == {}


def test_what_was_made_inside_of_a_node_that_stays_is_rolled_back_there(ground: Ground) -> None:
    outer = guest("outer", 1100, type="pve", memory=4096, disk=32)
    assert ground.run("create", manifest_text("within", outer)).success
    text = manifest_text(
        "within", outer, guest("leaf", 100, parent="outer"), guest("bad", 1101), on_error="rollback"
    )
    guest_actions = Played(fails={"bad"})
    outcome = ground.run("create", text, guest_actions)
    assert not outcome.success
    asked = [entry for entry in guest_actions.log if entry[0].startswith("delegate")]
    if ("delegate create", "outer") in asked:
        assert asked[-1] == ("delegate destroy", "outer", "leaf")
    assert ground.guests(above=1100, below=1110) == {1100: "outer"}


@pytest.mark.soak
def test_the_depth_is_that_of_the_graph_and_not_the_length_of_the_list(ground: Ground) -> None:
    leaf = guest("leaf", 100, parent="outer")
    outer = guest("outer", 1110, type="pve", memory=4096, disk=32)
    guest_actions = Played()
    outcome = ground.run("create", manifest_text("shallow", leaf, outer), guest_actions, depth=1)
    assert (outcome.success, statuses(outcome)) == (True, {"outer": "completed"})
    assert not any(entry[0].startswith("delegate") for entry in guest_actions.log)
    # Proxmox gives the id, and another manifest has a guest of the same name.
    free = {key: value for key, value in outer.items() if key != "vmid"}
    other = ground.run("create", manifest_text("unnumbered", free))
    assert other.success, other
    [chosen] = [node.vm_id for node in other.nodes]
    assert chosen not in (None, 1110)
    assert ground.yard.guests()[chosen or 0]["config"]["tags"] == "stackyard.unnumbered"


def test_reports_are_written_where_the_user_says(ground: Ground, tmp_path: Path) -> None:
    outcome = ground.run(
        "destroy", manifest_text("reported", guest("one", 1130)), report_dir=str(tmp_path / "reports")
    )
    assert outcome.success
    written = sorted(path.suffix for path in (tmp_path / "reports").iterdir())
    assert written == [".json", ".md", ".xml"]
    assert sorted(Path(path).suffix for path in outcome.logs) == written


def test_a_host_that_reports_about_guests_beside_it_is_not_believed(ground: Ground) -> None:
    """A host that was taken over must not decide what is recorded, or rolled back, of its neighbours."""
    outer = guest("outer", 1190, type="pve", memory=4096, disk=32)
    text = manifest_text("forged", guest("peer", 1191), outer, guest("leaf", 100, parent="outer"))

    def forged(verb: Verb, subtree: Manifest, request: VerbRequest) -> RunOutcome:
        said = all_well(verb, subtree, request)
        lies = [
            dataclasses.replace(said.nodes[0], name=name, vm_id=666, address="10.6.6.6")
            for name in ("peer", "outer", "nobody")
        ]
        return dataclasses.replace(said, nodes=(*said.nodes, *lies))

    outcome = ground.run("create", text, Played(inside=forged))
    assert outcome.success, outcome
    found = {node.name: (node.vm_id, node.address == "10.6.6.6") for node in outcome.nodes}
    assert found == {"peer": (1191, False), "outer": (1190, False), "leaf": (100, False)}
    assert ground.run("destroy", text).success


def test_a_phase_is_stopped_when_the_time_that_it_is_given_is_over(ground: Ground) -> None:
    text = manifest_text("hasty", guest("late", 1900))
    failed = ground.run("create", text, timeouts={"provision": 0.001})
    assert not failed.success
    [node] = failed.nodes
    assert "`provision` on lab was not done after 0.001 s" in (node.error or "")
    ground.run("destroy", text)
