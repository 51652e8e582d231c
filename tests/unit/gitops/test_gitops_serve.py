"""The GitOps server: what it does for pull requests and comments, and what it survives."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.gitops_service import Actions, Drift, run_service, until
from tests.support.memory_forge import BOT, MemoryForge

from stackyard.base.errors import StackyardError
from stackyard.clients.forge.failures import ForgeRateLimitedError, ForgeUnreachableError
from stackyard.clients.forge.model import CommitState, Permission, PullState

AWAY = ForgeUnreachableError("The forge does not answer.")


def make_forge(*numbers: int) -> MemoryForge:
    forge = MemoryForge(rights={"ann": Permission.WRITE, "bob": Permission.READ, BOT: Permission.WRITE})
    for number in numbers:
        forge.add_pull(number)
    return forge


# --- Reconciliation


async def test_pull_requests_that_no_webhook_told_of_are_planned_at_the_start(tmp_path: Path) -> None:
    forge, actions = make_forge(1, 2), Actions()
    async with run_service(tmp_path, forge, actions):
        await until(lambda: sorted(actions.done) == [("plan", 1), ("plan", 2)])


async def test_what_was_looked_at_is_not_planned_again_until_something_changes(tmp_path: Path) -> None:
    forge, actions = make_forge(1, 2), Actions()
    async with run_service(tmp_path, forge, actions) as rig:
        await until(lambda: len(actions.done) == 2)
        await rig.idle()
    actions.done.clear()
    forge.change(2, head="f" * 40)
    async with run_service(tmp_path, forge, actions) as rig:
        await until(lambda: actions.done == [("plan", 2)])
        await rig.idle()
    actions.done.clear()
    forge.tips["main"] = "c" * 40
    async with run_service(tmp_path, forge, actions):
        # The base moved: every plan is of another merge.
        await until(lambda: sorted(actions.done) == [("plan", 1), ("plan", 2)])


async def test_reconciliation_finds_what_is_missed_while_the_server_runs(tmp_path: Path) -> None:
    forge, actions = make_forge(), Actions()
    async with run_service(tmp_path, forge, actions, reconcile_every_s=0.2):
        await until(lambda: "pulls open" in forge.calls)
        forge.add_pull(3)
        await until(lambda: ("plan", 3) in actions.done)


async def test_a_merge_that_no_webhook_told_of_is_applied_once(tmp_path: Path) -> None:
    forge, actions = make_forge(1), Actions()
    async with run_service(tmp_path, forge, actions) as rig:
        await until(lambda: actions.done == [("plan", 1)])
        await rig.idle()
    forge.change(1, state=PullState.MERGED)
    # This one was opened and merged while nobody looked.
    forge.add_pull(2, state=PullState.MERGED)
    async with run_service(tmp_path, forge, actions, reconcile_every_s=0.2):
        await until(lambda: len(actions.done) == 3)
        looks = forge.calls.count("pulls merged")
        await until(lambda: forge.calls.count("pulls merged") > looks + 3)
    assert actions.done == [("plan", 1), ("apply", 1), ("apply", 2)]


async def test_what_was_merged_before_the_first_start_is_left_alone(tmp_path: Path) -> None:
    forge, actions = make_forge(), Actions()
    forge.add_pull(1, state=PullState.MERGED)
    forge.add_pull(2, state=PullState.CLOSED)
    async with run_service(tmp_path, forge, actions) as rig:
        await until(lambda: "pulls merged" in forge.calls)
        forge.add_pull(3)
        await rig.post(forge.delivery(3))
        await until(lambda: ("plan", 3) in actions.done)
        forge.say(1, "ann", "What became of this?")
        await rig.post(forge.delivery(1), delivery="late")
        await until(lambda: "comments 1" in forge.calls)
    assert ("apply", 1) not in actions.begun


async def test_merges_are_applied_in_their_order(tmp_path: Path) -> None:
    forge, actions = make_forge(*range(1, 9)), Actions(work_s=0.01)
    async with run_service(tmp_path, forge, actions) as rig:
        await until(lambda: len(actions.done) == 8)
        await rig.idle()
    order = [5, 2, 8, 1, 7, 3, 6, 4]
    for number in order:
        forge.change(number, state=PullState.MERGED)
    async with run_service(tmp_path, forge, actions):
        await until(lambda: sum(what == "apply" for what, _ in actions.done) == 8)
    assert sorted(number for what, number in actions.done if what == "apply") == sorted(order)
    begun = [number for what, number in actions.begun if what == "apply"]
    assert begun == [number for what, number in actions.done if what == "apply"]


# --- Statuses and comments


async def test_a_new_commit_has_a_status_before_anything_else_is_asked(tmp_path: Path) -> None:
    forge, actions = make_forge(), Actions(work_s=600.0)
    async with run_service(tmp_path, forge, actions) as rig:
        await until(lambda: "pulls open" in forge.calls)
        forge.add_pull(7)
        forge.calls.clear()
        await rig.post(forge.delivery(7))
        await until(lambda: actions.begun == [("plan", 7)])
    assert forge.calls[:2] == ["pull 7", "set_status"]
    (status,) = forge.all_statuses[forge.all_pulls[7].head]
    assert (status.context, status.state) == ("stackyard", CommitState.PENDING)


@pytest.mark.parametrize("author", ["ann", "bob", "mallory"])
async def test_a_command_counts_for_those_who_may_write(tmp_path: Path, author: str) -> None:
    forge, actions = make_forge(7), Actions()
    async with run_service(tmp_path, forge, actions) as rig:
        await until(lambda: actions.done == [("plan", 7)])
        forge.say(7, author, "stackyard plan\nstackyard unlock\nstackyard apply stack:a\nstackyard help")
        await rig.post(forge.delivery(7))
        await until(lambda: actions.done.count(("plan", 7)) == 2)
        if author == "ann":
            await until(lambda: ("apply", 7) in actions.done)
            assert ("unlock", 7) in actions.done
            assert actions.applied == [frozenset({"stack:a"})]
    assert actions.forced == ([7] if author == "ann" else [])
    answers = [one.body for one in forge.all_comments[7] if one.author == BOT]
    assert [("stackyard allow destroy" in body) for body in answers] == ([True] if author == "ann" else [])


async def test_a_comment_of_a_removed_user_stops_nothing(tmp_path: Path) -> None:
    forge, actions = make_forge(7), Actions()
    forge.gone.add("ghost")
    forge.say(7, "ghost", "stackyard plan")
    async with run_service(tmp_path, forge, actions):
        await until(lambda: actions.done == [("plan", 7)])
    assert actions.forced == []


async def test_a_comment_is_obeyed_once_also_by_the_next_server(tmp_path: Path) -> None:
    forge, actions = make_forge(7), Actions()
    forge.say(7, "ann", "stackyard plan")
    async with run_service(tmp_path, forge, actions) as rig:
        await until(lambda: actions.forced == [7])
        await rig.post(forge.delivery(7))
        await until(lambda: len(actions.done) == 2)
        await rig.idle()
    forge.change(7, head="f" * 40)
    async with run_service(tmp_path, forge, actions):
        await until(lambda: len(actions.done) == 3)
    assert actions.forced == [7]


async def test_what_was_edited_or_written_by_us_is_no_command(tmp_path: Path) -> None:
    forge, actions = make_forge(7), Actions()
    forge.say(7, "ann", "stackyard apply", is_edited=True)
    forge.say(7, BOT, "stackyard apply")
    forge.say(7, "ann", "> stackyard apply")
    async with run_service(tmp_path, forge, actions):
        await until(lambda: actions.done == [("plan", 7)])
    assert actions.applied == []


async def test_a_mistake_in_a_command_is_answered_and_nothing_is_done(tmp_path: Path) -> None:
    forge, actions = make_forge(7), Actions()
    forge.say(7, "ann", "stackyard aply <script>")
    async with run_service(tmp_path, forge, actions):
        await until(lambda: actions.done == [("plan", 7)])
    (answer,) = [one.body for one in forge.all_comments[7] if one.author == BOT]
    assert "`apply` may be meant" in answer
    assert "script" not in answer


async def test_a_comment_below_an_issue_is_left_alone(tmp_path: Path) -> None:
    forge, actions = make_forge(), Actions()
    async with run_service(tmp_path, forge, actions) as rig:
        await rig.post(forge.delivery(99))
        await until(lambda: "pull 99" in forge.calls)
        await until(lambda: "repository" in forge.calls)
    assert (actions.begun, [text for text in rig.told if "failed" in text]) == ([], [])


# --- Drift


async def test_all_targets_are_looked_at_for_drift_when_it_is_time(tmp_path: Path) -> None:
    drift = Drift(("env:dev", "stack:web"))
    async with run_service(tmp_path, make_forge(), Actions(), drift=drift):
        await until(lambda: set(drift.checked) == {"env:dev", "stack:web", "report"})


# --- Faults


async def test_a_forge_that_is_down_is_asked_again_until_it_is_there(tmp_path: Path) -> None:
    forge, actions = make_forge(7), Actions()
    forge.is_away = AWAY
    async with run_service(tmp_path, forge, actions) as rig:
        assert (await rig.post(forge.delivery(7)))[0] == 202
        await until(lambda: any("look 7 is tried again" in text for text in rig.told))
        assert actions.begun == []
        forge.is_away = None
        await until(lambda: ("plan", 7) in actions.done)


async def test_a_forge_that_limits_requests_is_left_in_peace_for_as_long_as_it_says(tmp_path: Path) -> None:
    forge, actions = make_forge(7), Actions()
    async with run_service(tmp_path, forge, actions) as rig:
        await until(lambda: actions.done == [("plan", 7)])
        forge.fail.append(ForgeRateLimitedError("Too many.", retry_after_s=0.4))
        forge.calls.clear()
        await rig.post(forge.delivery(7))
        await until(lambda: any("tried again in 0.4 s" in text for text in rig.told))
        assert forge.calls == ["pull 7"]
        await until(lambda: len(actions.done) == 2)


async def test_a_failure_in_the_middle_of_a_look_is_made_good(tmp_path: Path) -> None:
    forge, actions = make_forge(7), Actions()
    forge.say(7, "ann", "stackyard plan")
    actions.fail = [AWAY, RuntimeError("a defect"), AWAY]
    async with run_service(tmp_path, forge, actions) as rig:
        await until(lambda: actions.forced == [7])
        assert actions.begun.count(("plan", 7)) == 4
        assert any("failed by a defect: RuntimeError" in text for text in rig.told)


async def test_what_does_not_pass_by_itself_is_told_and_does_not_stop_the_others(tmp_path: Path) -> None:
    forge, actions = make_forge(7), Actions()
    actions.fail = [StackyardError("The rules cannot be read.")]
    async with run_service(tmp_path, forge, actions) as rig:
        await until(lambda: any("look 7 failed: E-FAILED The rules" in text for text in rig.told))
        forge.add_pull(8)
        await rig.post(forge.delivery(8))
        await until(lambda: actions.done == [("plan", 8)])


async def test_a_server_that_stops_in_the_middle_leaves_its_work_to_the_next_one(tmp_path: Path) -> None:
    forge, actions = make_forge(7), Actions(work_s=600.0)
    forge.say(7, "ann", "stackyard plan")
    async with run_service(tmp_path, forge, actions):
        await until(lambda: actions.begun == [("plan", 7)])
    assert actions.done == []
    actions.work_s = 0.0
    async with run_service(tmp_path, forge, actions):
        await until(lambda: actions.forced == [7])


async def test_a_push_during_a_plan_is_planned_behind_it_and_only_once(tmp_path: Path) -> None:
    forge, actions = make_forge(7), Actions(work_s=0.3)
    async with run_service(tmp_path, forge, actions) as rig:
        await until(lambda: actions.begun == [("plan", 7)])
        for number in range(5):
            forge.change(7, head=f"{number + 100:040x}")
            await rig.post(forge.delivery(7), delivery=f"push-{number}")
        await until(lambda: actions.done == [("plan", 7)] * 2)
        await until(lambda: not forge.fail)
    assert actions.begun == [("plan", 7)] * 2


async def test_a_hundred_pull_requests_at_once_are_all_planned_and_applied(tmp_path: Path) -> None:
    forge, actions = make_forge(*range(1, 101)), Actions()
    async with run_service(tmp_path, forge, actions) as rig:
        await until(lambda: len(actions.done) == 100)
        for number in range(1, 101):
            forge.change(number, state=PullState.MERGED)
            await rig.post(forge.delivery(number, "closed"), delivery=f"merged-{number}")
        await until(lambda: len(actions.done) == 200)
    assert sorted(actions.done) == [(what, n) for what in ("apply", "plan") for n in range(1, 101)]


async def test_what_failed_after_its_merge_is_planned_again_where_a_comment_asks_for_it(
    tmp_path: Path,
) -> None:
    forge, actions = make_forge(1), Actions()
    async with run_service(tmp_path, forge, actions) as rig:
        await until(lambda: actions.done == [("plan", 1)])
        await rig.idle()
        forge.change(1, state=PullState.MERGED)
        forge.say(1, "ann", "stackyard plan")
        await rig.post(forge.delivery(1))
        await until(lambda: actions.done[-1] == ("apply", 1))
    assert actions.done == [("plan", 1), ("plan", 1), ("apply", 1)]
    assert actions.forced == [1]
