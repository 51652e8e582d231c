"""The failure table of the contract, row by row: each stops before the engine, or tells the truth."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import PROGRAM
from tests.support.deployment import CONTAINER, edited, place_in, text_of
from tests.support.deployment_bucket import ENV, new_bucket
from tests.support.deployment_rig import TWO, Rig, shared_rig
from tests.support.seaweed import require_seaweed

from stackyard.clients.objects import ANYTHING, LeaseWatch, acquire, open_objects
from stackyard.sources.deployment.lease import SuspectError, hold_lease
from stackyard.sources.deployment.write import WriteRequest, write
from stackyard.state import Actor, StateService

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with shared_rig(tmp_path_factory.mktemp("table")) as rig:
        yield rig


@pytest.fixture
def rig(shared: Rig) -> Rig:
    """Give the rig with its good object as the current one."""
    shared.plant(TWO)
    return shared


def engine_ran(ended_stderr: str) -> bool:
    return "Planning" in ended_stderr or "Preparing" in ended_stderr


def refused(rig: Rig, status: int = 65, **env: str) -> str:
    """Run an apply that has to refuse before the engine starts and anything changes; return its words."""
    before = rig.yard.guests()
    ended = rig.yard.with_env(**env).run("apply", "deployment", status=status)
    assert not engine_ran(ended.stderr), ended.stderr
    assert rig.yard.guests() == before
    return ended.stderr


# --- Object missing, 403, network down


def test_a_missing_object_plans_nothing_and_says_which_store_was_tried(rig: Rig) -> None:
    said = refused(rig, STACKYARD_DEPLOYMENT="elsewhere")
    assert "E-DEPLOYMENT-MISSING" in said
    assert "elsewhere" in said
    assert "would destroy 2 guests" in said


def test_a_missing_object_in_a_bucket_plans_nothing_and_says_which_key_was_tried(rig: Rig) -> None:
    bucket = new_bucket(require_seaweed())
    said = refused(rig, 65, STACKYARD_DEPLOYMENT=bucket.address, **ENV)
    assert bucket.key in said
    assert "would destroy 2 guests" in said


def test_a_store_that_forbids_plans_nothing(rig: Rig) -> None:
    bucket = new_bucket(require_seaweed())
    env = {**ENV, "S3_SECRET_ACCESS_KEY": "wrong"}
    said = refused(rig, 69, STACKYARD_DEPLOYMENT=bucket.address, **env)
    assert "E-DEPLOYMENT-FETCH" in said
    assert bucket.key in said
    assert "403" in said


def test_a_store_that_cannot_be_reached_plans_nothing(rig: Rig) -> None:
    address = "s3://iac-inventory/deployment.json?endpoint=http://127.0.0.1:1"
    said = refused(rig, 69, STACKYARD_DEPLOYMENT=address, **ENV)
    assert "E-DEPLOYMENT-FETCH" in said
    assert "iac-inventory" in said
    assert "would destroy 2 guests" in said


def test_there_is_no_copy_to_fall_back_to(rig: Rig) -> None:
    rig.yard.run("plan", "deployment")
    rig.yard.run("deployment", "get", "deployment.json")
    try:
        assert "E-DEPLOYMENT-MISSING" in refused(rig, STACKYARD_DEPLOYMENT="elsewhere")
    finally:
        (rig.yard.folder / "deployment.json").unlink()


# --- Empty body, whitespace, {}, null, array


@pytest.mark.parametrize("body", ["", " \n\t ", "{}", "null", '{"_comment": "x"}'])
def test_an_object_that_holds_nothing_is_refused_with_the_guests_at_stake(rig: Rig, body: str) -> None:
    rig.plant(body)
    said = refused(rig)
    assert "E-DEPLOYMENT-EMPTY" in said
    assert "would destroy 2 guests" in said


@pytest.mark.parametrize("body", ["", "{", "[]"])
def test_a_broken_object_is_taken_back_with_rollback_and_with_nothing_else(rig: Rig, body: str) -> None:
    rig.plant(body)
    rig.error("deployment", "edit", "--set", "domain=x.com", status=65)
    rig.yard.run("deployment", "rollback", "@1")
    assert rig.current() == TWO
    rig.plant(edited(TWO, containers__third={**CONTAINER, "vm_id": 125, "hostname": "third"}))
    rig.plant(body)
    # What is lost is judged by the last version that was whole.
    assert rig.error("deployment", "rollback", "@2", status=65)["code"] == "E-DEPLOYMENT-REFUSED"


def test_an_array_is_refused_with_the_guests_at_stake(rig: Rig) -> None:
    rig.plant(f"[{text_of(TWO)}]")
    said = refused(rig)
    assert "E-DEPLOYMENT-SYNTAX" in said
    assert "would destroy 2 guests" in said


# --- Truncated JSON


def test_a_truncated_object_is_refused_with_line_and_column(rig: Rig) -> None:
    rig.plant(text_of(TWO)[:-40])
    error = rig.error("plan", "deployment", status=65)
    assert error["code"] == "E-DEPLOYMENT-SYNTAX"
    assert error["where"]["line"]
    assert error["where"]["column"]
    assert "would destroy 2 guests" in error["detail"]


# --- Duplicate keys


def test_a_duplicate_key_is_refused_and_the_last_does_not_win(rig: Rig) -> None:
    text = text_of(TWO).replace('"pools":', '"containers": {}, "pools":', 1)
    rig.plant(text)
    said = refused(rig)
    assert "'containers' twice" in said


# --- Comments alone


def test_containers_that_hold_comments_alone_are_refused(rig: Rig) -> None:
    rig.plant(edited(TWO, containers={"_a": "x", "_b": CONTAINER}))
    assert "E-DEPLOYMENT-NO-ENTRY" in refused(rig)


# --- A key vanished in any guarded map


@pytest.mark.parametrize(
    "lost",
    [
        "containers.second",
        "nodes.pve2",
        "pools.apps",
        "vms.box",
        "node_storage.pve2",
        "node_services.agent",
        "generated.agent-2",
    ],
)
def test_a_vanished_key_is_refused_unless_it_is_named(rig: Rig, lost: str) -> None:
    full = edited(
        TWO,
        nodes__pve2={"role": "node-2"},
        pools__apps={},
        vms={"box": {"vm_id": 200, "vlan": "compute"}},
        node_storage={"pve2": {"pools": {"local-lvm": {"register": True}}}},
        node_services={
            "agent": {
                "vlan": "compute",
                "per_node": {"pve1": {"suffix": 1, "vm_id": 201}, "pve2": {"suffix": 2, "vm_id": 202}},
            }
        },
    )
    section, _, key = lost.partition(".")
    smaller = _without(full, section, key)
    rig.plant(full)
    path = rig.yard.folder / "smaller.json"
    path.write_text(text_of(smaller))
    error = rig.error("deployment", "put", "smaller.json", "--base", "@0", status=65)
    assert error["code"] == "E-DEPLOYMENT-REFUSED"
    assert lost in error["remedy"]
    named = error["remedy"].partition("repeat with: ")[2].split()
    assert rig.current() == full
    rig.yard.run("deployment", "put", "smaller.json", "--base", "@0", *named)
    assert rig.current() == smaller


def _without(full: dict[str, Any], section: str, key: str) -> dict[str, Any]:
    if section == "generated":
        return edited(full, node_services__agent__per_node__pve2=None)
    if section == "nodes":
        # Nothing may be left on the node that goes.
        return edited(full, nodes__pve2=None, node_services__agent__per_node__pve2=None)
    return edited(full, **{f"{section}__{key}": None})


def test_naming_some_of_the_vanished_keys_is_not_enough(rig: Rig) -> None:
    rig.plant(edited(TWO, containers__third={**CONTAINER, "vm_id": 125, "hostname": "third"}))
    less = ["--unset", "containers.third", "--unset", "containers.second"]
    error = rig.error("deployment", "edit", *less, "--allow-delete", "third", status=65)
    assert [found["detail"] for found in error["diagnostics"]] == ["containers.second would disappear."]


def test_edit_and_rollback_are_guarded_as_put_is(rig: Rig) -> None:
    version = rig.plant(TWO)
    rig.plant(edited(TWO, containers__third={**CONTAINER, "vm_id": 125, "hostname": "third"}))
    for verb in (("edit", "--unset", "containers.third"), ("rollback", version)):
        error = rig.error("deployment", *verb, status=65)
        assert error["code"] == "E-DEPLOYMENT-REFUSED"
        assert "--allow-delete containers.third" in error["remedy"]


# --- A key renamed with the same vm_id


def test_a_renamed_key_is_reported_as_a_rename_and_never_destroys(rig: Rig) -> None:
    renamed = edited(TWO, containers__other=TWO["containers"]["second"], containers__second=None)
    (rig.yard.folder / "renamed.json").write_text(text_of(renamed))
    put = ("deployment", "put", "renamed.json", "--base", "@0")
    error = rig.error(*put, status=65)
    assert [found["code"] for found in error["diagnostics"]] == ["E-DEPLOYMENT-RENAME"]
    rig.yard.run(*put, "--accept-renames")
    ended = rig.yard.run("plan", "deployment", status=3)
    assert "Keys do not agree: guest 124" in ended.stderr
    before = rig.yard.guests()
    assert rig.yard.codes("apply", "deployment", "--no-verify") == ["E-GUARD-RENAMES-GUEST"]
    assert rig.yard.guests() == before
    rig.yard.run("apply", "deployment", "--no-verify", "--accept-renames")
    assert set(rig.yard.guests()) == {123, 124}
    rig.yard.run("plan", "deployment")
    # And back again, for the others.
    rig.plant(TWO)
    rig.yard.run("apply", "deployment", "--no-verify", "--accept-renames")
    rig.yard.run("plan", "deployment")


# --- The object changed since it was fetched


def test_an_object_that_changed_since_it_was_fetched_is_not_overwritten(rig: Rig) -> None:
    rig.yard.run("deployment", "get", "mine.json")
    theirs = edited(TWO, containers__second__cpu_cores=8)
    rig.plant(theirs)
    mine = edited(TWO, **{"containers__my-container__cpu_cores": 4})
    (rig.yard.folder / "mine.json").write_text(text_of(mine))
    error = rig.error("deployment", "put", "mine.json", status=75)
    assert error["code"] == "E-DEPLOYMENT-MERGE"
    assert error["detail"].count("etag ") == 2
    assert rig.current() == theirs
    # The proposal has both changes, and can be put as the error says.
    command = error["remedy"].partition("then: ")[2].split()
    rig.yard.run(*command[1:])
    both = edited(theirs, **{"containers__my-container__cpu_cores": 4})
    assert rig.current() == both


def test_changes_that_conflict_are_shown_three_ways(rig: Rig) -> None:
    rig.yard.run("deployment", "get", "mine.json")
    rig.plant(edited(TWO, containers__second__cpu_cores=8))
    (rig.yard.folder / "mine.json").write_text(text_of(edited(TWO, containers__second__cpu_cores=4)))
    error = rig.error("deployment", "put", "mine.json", status=75)
    assert "containers.second.cpu_cores: it was 2, you have 4, they have 8" in error["detail"]


def test_a_file_of_unknown_origin_is_not_put_over_an_object(rig: Rig) -> None:
    (rig.yard.folder / "stray.json").write_text(text_of(TWO))
    assert "--base" in rig.error("deployment", "put", "stray.json", status=64)["detail"]


# --- The lease is held


def test_a_held_lease_is_waited_for_with_its_holder_and_ends_with_75(rig: Rig) -> None:
    place = place_in(rig.yard.folder)
    with hold_lease(place, "a long edit"):
        ended = rig.yard.run("deployment", "edit", "--set", "domain=x.com", "--lease-wait", "0.5", status=75)
        assert "a long edit" in ended.stderr
        assert f"pid {os.getpid()}" in ended.stderr
        assert "expires in" in ended.stderr
        status = rig.yard.json("deployment", "lease", "status")
        assert (status["is_held"], status["doing"]) == (True, "a long edit")
        assert rig.error("deployment", "lease", "release", "--lease-id", "other", status=65)
    assert rig.current() == TWO
    assert rig.yard.json("deployment", "lease", "status") == {"is_held": False}
    rig.yard.run("deployment", "edit", "--set", "domain=x.com", "--lease-wait", "0.5")


def test_an_expired_lease_is_taken_over_by_compare_and_set(rig: Rig) -> None:
    with rig.store() as store:
        dead = acquire(store.objects, store.lease_key, owner="dead@elsewhere", promise_s=0.4)
        assert dead is not None
        rig.yard.run("deployment", "edit", "--set", "domain=x.com", "--lease-wait", "60")
        late = acquire(store.objects, store.lease_key, owner="late", promise_s=1, watch=LeaseWatch())
        assert late is not None
        assert late.epoch > dead.epoch + 1
        late.release()


def test_a_lease_is_released_by_its_id_and_broken_for_a_reason_that_is_written_down(rig: Rig) -> None:
    with rig.store() as store:
        assert acquire(store.objects, store.lease_key, owner="gone", promise_s=3600) is not None
        held = rig.yard.json("deployment", "lease", "status")
        rig.yard.run("deployment", "lease", "release", "--lease-id", held["id"])
        assert acquire(store.objects, store.lease_key, owner="gone", promise_s=3600) is not None
        rig.yard.run("deployment", "lease", "break", status=64)
        rig.yard.run("deployment", "lease", "break", "--reason", "laptop was stolen")
        audit = store.objects.list(f"{store.lease_key}-audit/")
        stored = store.objects.get(audit[-1].key)
        assert stored is not None
        assert b"laptop was stolen" in stored.data
        assert b'"holder":"gone"' in stored.data
    assert rig.yard.json("deployment", "lease", "status") == {"is_held": False}


# --- The lease is lost during work


def test_a_lease_lost_during_work_lets_it_finish_and_reports_it_as_suspect(rig: Rig) -> None:
    place = place_in(rig.yard.folder)
    data = text_of(edited(TWO, domain="suspect.example.com")).encode()

    def make(current: object) -> bytes:
        with rig.store() as store:
            store.objects.put(store.lease_key, b'{"somebody": "else"}', expect=ANYTHING)
        return data

    with pytest.raises(SuspectError, match="version"):
        write(place, WriteRequest(kind="edit", make=make))
    assert rig.current()["domain"] == "suspect.example.com"
    with rig.store() as store:
        store.objects.delete(store.lease_key)


# --- A stale state lock


def test_a_stale_state_lock_is_shown_with_its_holder_and_never_broken(rig: Rig) -> None:
    folder = rig.yard.folder / ".stackyard" / "state"
    name = "deployment/homelab/cluster"
    objects = open_objects(folder)
    service = StateService(objects)
    lock_id = "11111111-1111-1111-1111-111111111111"
    actor = Actor(principal="dead@box")
    service.locks.lock(name, f'{{"ID": "{lock_id}", "Operation": "x", "Who": "dead@box"}}'.encode(), actor)
    try:
        ended = rig.yard.run("plan", "deployment", "--lock-wait", "0", status=75)
        assert "dead@box" in ended.stderr
        ended = rig.yard.run("plan", "deployment", "--lock-wait", "0", status=75)
    finally:
        service.locks.unlock(name, lock_id, actor)
        objects.close()
    rig.yard.run("plan", "deployment")


# --- Schema right, references broken


def test_broken_references_are_listed_all_at_once(rig: Rig) -> None:
    rig.plant(
        edited(
            TWO,
            **{
                "containers__second__pool_id": "nowhere",
                "containers__second__vm_id": 123,
                "containers__my-container__vlan": "nowhere",
                "containers__my-container__node_name": "nowhere",
            },
        )
    )
    error = rig.error("apply", "deployment", status=65)
    assert len(error["diagnostics"]) == 4
    assert all(found["where"]["line"] for found in error["diagnostics"])


# --- The plan was reviewed and the input changed


def test_a_reviewed_plan_is_bound_to_the_version_of_the_object(rig: Rig) -> None:
    rig.plant(edited(TWO, containers__second__description="reviewed"))
    rig.yard.run("plan", "deployment", "--out", "reviewed.plan")
    # The same guests in another version: what was reviewed is no longer what is there.
    rig.plant(edited(TWO, containers__second__description="reviewed", _comment="another"))
    error = rig.error("apply", "deployment", "--plan", "reviewed.plan", status=65)
    assert error["code"] == "E-PLAN-MOVED"
    assert "etag" in error["detail"]
    rig.yard.run("plan", "deployment", "--out", "again.plan")
    rig.yard.run("apply", "deployment", "--plan", "again.plan", "--no-verify")


# --- Hard prohibitions


@pytest.mark.parametrize("name", ["terraform.tfvars", "guests.auto.tfvars", "guests.auto.tfvars.json"])
def test_a_file_of_variables_beside_the_object_is_refused(rig: Rig, name: str) -> None:
    path = rig.yard.folder / name
    path.write_text("{}\n")
    try:
        assert "E-DEPLOYMENT-TFVARS" in refused(rig)
    finally:
        path.unlink()


@pytest.mark.parametrize("folder", ["infrastructure/tofu", "stacks/network"])
def test_variables_of_a_cluster_and_of_stacks_are_none_of_its_business(rig: Rig, folder: str) -> None:
    there = rig.yard.folder / folder
    there.mkdir(parents=True)
    for name in ("terraform.tfvars", "nodes.auto.tfvars"):
        (there / name).write_text("")
    rig.yard.run("plan", "deployment")
    rig.yard.run("deployment", "hook")


def test_a_deployment_json_in_git_is_refused_also_by_the_hook(rig: Rig, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(rig.yard.folder, tree)

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.com")
        return subprocess.run(
            ["git", *identity, *arguments],
            cwd=tree,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": f"{Path(PROGRAM[0]).parent}:{os.environ['PATH']}"},
        )

    git("init", "-q")
    yard = replace(rig.yard, folder=tree)
    yard.run("deployment", "hook", "--install")
    (tree / "deployment.json.example").write_text("{}")
    git("add", "deployment.json.example")
    assert git("commit", "-qm", "an example is welcome").returncode == 0
    (tree / "sub").mkdir()
    (tree / "sub" / "deployment.json").write_text(text_of(TWO))
    yard.run("deployment", "hook")
    git("add", "sub/deployment.json")
    done = git("commit", "-qm", "never")
    assert done.returncode != 0
    assert "E-DEPLOYMENT-TRACKED" in done.stderr
    ended = yard.run("plan", "deployment", status=65)
    assert "git rm --cached sub/deployment.json" in ended.stderr
    git("rm", "-q", "--cached", "sub/deployment.json")
    (tree / "sub" / "terraform.tfvars").write_text("")
    (tree / ".gitignore").write_text("terraform.tfvars\n")
    yard.run("plan", "deployment")
    (tree / "terraform.tfvars").write_text("")
    assert "E-DEPLOYMENT-TFVARS" in yard.run("plan", "deployment", status=65).stderr


def test_a_local_file_works_without_the_store_and_says_so_loudly(rig: Rig) -> None:
    (rig.yard.folder / "local.json").write_text(text_of(TWO))
    yard = rig.yard.with_env(DEPLOYMENT_JSON_PATH="local.json", STACKYARD_DEPLOYMENT="s3://down/x")
    ended = yard.run("plan", "deployment")
    assert "DEPLOYMENT_JSON_PATH" in ended.stderr
    assert "IN PLACE OF" in ended.stderr
    ended = yard.run("deployment", "edit", "--set", "domain=x", status=64)
    assert "Unset it to write" in ended.stderr


# --- Holding a lease while it is needed


def test_a_lease_is_renewed_while_it_is_held(rig: Rig) -> None:
    place = place_in(rig.yard.folder)
    # A sign of life every half a second: a busy machine has a whole one to be late.
    with hold_lease(place, "long work", promise_s=1.5) as held, rig.store() as store:
        watch = LeaseWatch()
        looking = threading.Event()
        for _ in range(25):
            assert acquire(store.objects, store.lease_key, owner="x", promise_s=1, watch=watch) is None
            looking.wait(0.1)
        assert held.is_held
