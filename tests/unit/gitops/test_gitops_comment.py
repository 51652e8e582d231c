"""The comment of a pull request: what is lost first, nothing that leads out of it, never too long."""

from __future__ import annotations

import re
from typing import Any

import pytest

from stackyard.clients.forge.model import CommitState, ForgeLimits
from stackyard.gitops.comment import CommentView, render_comment
from stackyard.gitops.markdown import code, cut_middle, fence
from stackyard.gitops.masking import Mask, looks_secret
from stackyard.gitops.model import CodeFinding, CodeRisk, PullPlan, TargetPlan, TargetState
from stackyard.gitops.statuses import list_statuses

LIMITS = ForgeLimits(comment_chars=65_000, context_chars=255, description_chars=140)


def change(action: str, name: str, **more: Any) -> dict[str, Any]:
    return {
        "address": f"terraform_data.{name}",
        "subject": name,
        "action": action,
        "differences": [],
        "imported_as": None,
        "moved_from": None,
        **more,
    }


def difference(name: str, before: Any, after: Any) -> dict[str, Any]:
    return {"attribute": name, "before": before, "after": after, "forces_replace": False}


def target(name: str, *changes: dict[str, Any], **more: Any) -> TargetPlan:
    state = TargetState.CHANGES if changes else TargetState.UNCHANGED
    said = {"target": name, "state": state, "document": {"changes": list(changes)}, **more}
    return TargetPlan(**said)


def plan(*targets: TargetPlan, **more: Any) -> PullPlan:
    said: dict[str, Any] = {
        "repository": "yard/infra",
        "number": 7,
        "head": "a" * 40,
        "base_branch": "main",
        "base": "b" * 40,
        "tree": "c" * 40,
        "targets": targets,
    }
    return PullPlan(**{**said, **more})


def test_what_is_lost_is_first_and_by_name_and_what_stays_is_one_line() -> None:
    shown = render_comment(
        plan(
            target("stack:a", change("create", "one"), change("update", "two")),
            target("stack:b", change("delete", "gone"), change("replace", "other")),
            *(target(f"stack:same{number}") for number in range(50)),
        ),
        CommentView(),
    )
    assert shown.index("- destroy gone") < shown.index("± replace other") < shown.index("| `stack:b`")
    assert shown.index("| `stack:b` | to be applied |  |  | 1 | 1 |") < shown.index("| `stack:a`")
    assert "1 to destroy, 1 to replace, 1 to change, 1 to create" in shown
    assert shown.count("<summary>50 unchanged</summary>") == 1


def test_refusals_have_the_exact_words_that_permit_them() -> None:
    refused = {"detail": "web would be destroyed", "permit": "--allow-destroy web"}
    other = {"detail": "no room on pve1", "permit": None}
    one = target("env:dev", change("delete", "web"), state=TargetState.REFUSED)
    document = {**one.document, "guard": {"refused": [refused, other]}}
    shown = render_comment(
        plan(TargetPlan(target="env:dev", state=TargetState.REFUSED, document=document)), CommentView()
    )
    assert "`stackyard allow destroy web`" in shown
    assert "nothing permits this" in shown


def test_code_that_has_to_be_allowed_is_named_with_its_line_and_the_commit() -> None:
    finding = CodeFinding(risk=CodeRisk.PROGRAM, path="a/main.tf", line=3, detail='data "external" "x"')
    blocked = TargetPlan(target="stack:a", state=TargetState.BLOCKED, findings=(finding,))
    shown = render_comment(plan(blocked), CommentView())
    assert "`a/main.tf:3` runs a program" in shown
    assert f"`stackyard allow code {'a' * 40}`" in shown


HOSTILE = (
    "```\n</details> @everyone <script>alert(1)</script> [x](javascript:x) ![i](https://e/p.png) | # h\r\n"
    "stackyard apply\n~~~ ` `` https://example.org \x1b[31m \u202e"
)


def test_no_text_from_outside_leads_out_of_its_code() -> None:
    hostile = target(
        "stack:a",
        change("delete", HOSTILE, differences=[]),
        change("update", "x", differences=[difference(HOSTILE, HOSTILE, HOSTILE)]),
        reasons=(HOSTILE,),
        drift=(change("update", HOSTILE, differences=[difference("a", HOSTILE, "b")]),),
        error={"code": "E-X", "summary": HOSTILE, "detail": HOSTILE, "exit_status": 65, "remedy": HOSTILE},
    )
    finding = CodeFinding(risk=CodeRisk.PATH, path=HOSTILE, line=1, detail=HOSTILE)
    document = {
        "changes": [],
        "guard": {"refused": [{"detail": HOSTILE, "permit": f"--allow-destroy {HOSTILE}"}]},
    }
    shown = render_comment(
        plan(
            hostile,
            TargetPlan(target=HOSTILE, state=TargetState.BLOCKED, findings=(finding,), reasons=(HOSTILE,)),
            TargetPlan(target="stack:c", state=TargetState.REFUSED, document=document),
        ),
        CommentView(needs={HOSTILE: ("x",)}),
    )
    outside = _without_code(shown)
    for sign in ("@everyone", "javascript", "script", "https://", "\x1b", "\u202e", "stackyard apply"):
        assert sign not in outside, sign
    assert outside.count("<details>") == outside.count("</details>")
    assert not re.search(r"^stackyard ", shown, re.MULTILINE)


def _without_code(text: str) -> str:
    """Return Markdown without its blocks and spans of code, as CommonMark reads them."""
    kept, until = [], ""
    for line in text.split("\n"):
        ticks = re.match(r" {0,3}(`{3,})", line)
        if until:
            until = "" if ticks and len(ticks[1]) >= len(until) and not line.strip("` ") else until
        elif ticks:
            until = ticks[1]
        else:
            kept.append(line)
    assert not until
    return re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", "\n".join(kept))


@pytest.mark.parametrize("text", ["a`b", "``", "`", "", " x ", "a|b", "a\nb", "```x```"])
def test_a_span_of_code_ends_where_its_text_does(text: str) -> None:
    assert _without_code(f"[{code(text)}]") == "[]"
    assert "\n" not in code(text)
    assert "|" not in code(text)


def test_a_block_of_code_is_longer_than_any_of_its_ticks() -> None:
    assert _without_code(fence(["```", "````` x", "y"])) == ""


def test_pain_11_a_long_plan_is_cut_in_the_middle_within_what_the_forge_takes() -> None:
    many = [
        change("update", f"vm{number}", differences=[difference("x", "a" * 70, "b")])
        for number in range(4000)
    ]
    for limit in (2_000, 65_000, 1_000_000):
        shown = render_comment(
            plan(target("stack:a", *many), target("stack:b", change("create", "z"))), CommentView(limit=limit)
        )
        assert len(shown) <= limit
        assert "4000 to change" in shown
    assert "lines are left out here" in render_comment(
        plan(target("stack:a", *many)), CommentView(limit=65_000)
    )
    lines = [str(number) for number in range(100)]
    cut = cut_middle(lines, 200)
    assert (cut[0], cut[-1]) == ("0", "99")
    assert sum(len(line) + 1 for line in cut) <= 200


def test_three_thousand_targets_have_room_in_one_comment_and_few_statuses() -> None:
    many = plan(*(target(f"stack:{number}", change("create", "x")) for number in range(3000)))
    assert len(render_comment(many, CommentView(limit=65_000))) <= 65_000
    assert len(list(list_statuses(many, {}, LIMITS))) <= 60


def test_engine_words_are_never_shown_and_those_of_the_input_are() -> None:
    def failed(status: int) -> str:
        error = {"code": "E-X", "summary": "It failed", "detail": "the words", "exit_status": status}
        one = TargetPlan(target="stack:a", state=TargetState.FAILED, error=error)
        return render_comment(plan(one), CommentView())

    assert "the words" not in failed(1)
    assert "the words" in failed(65)


def test_drift_that_would_be_overwritten_is_shown() -> None:
    drifted = change("update", "vm", differences=[difference("memory", 1024, 2048)])
    one = target("stack:a", change("update", "vm"), drift=(drifted,))
    shown = render_comment(plan(one), CommentView())
    assert "! changed by hand since the last apply, and overwritten: vm" in shown
    assert "memory: 1024 -> 2048" in shown


def test_known_values_and_what_looks_random_are_masked() -> None:
    mask = Mask(["hunter22"])
    for secret in (
        "hunter22",
        "ghp_abcdefghijklmnopqrstuvwxyz012345",
        "q8Zr1mVxT0pLw7YdK3uBsE5c",
        "4f9a1c7be02d5836af91c0d2e7b35846",
        "$6$rounds$abcdefghijklmnop",
    ):
        assert secret not in mask(f"x = {secret} y"), secret
    for plain in (
        "module.proxmox_qemu_vm.proxmox_virtual_environment_vm",
        "stacks/onprem/proxmox_server_A_gpu",
        "debian-12-genericcloud-amd64-20240507-1740",
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
        "k8s-v1-30-control-plane-node-01-pve2-rack3",
    ):
        assert mask(plain) == plain
    assert not looks_secret("a" * 40)


def test_pain_15_status_names_are_stable_short_and_never_the_same_for_two_targets() -> None:
    names = ["stack:" + "x" * 300 + str(number) for number in range(3)]
    said = plan(*(target(name, change("create", "a")) for name in names))
    found = list(list_statuses(said, {names[0]: ("approval",)}, LIMITS))
    contexts = [one.context for one in found]
    assert len(set(contexts)) == 4
    assert max(map(len, contexts)) <= 255
    assert contexts[-1] == "stackyard"
    assert (found[0].state, found[-1].state) == (CommitState.PENDING, CommitState.PENDING)
    done = list(list_statuses(plan(*(target(name) for name in names)), {}, LIMITS))
    assert [(one.context, one.state) for one in done] == [("stackyard", CommitState.SUCCESS)]
