"""Roles, users and tokens: a plan has what is missing and nothing else, as a call and as a command."""

from __future__ import annotations

from typing import Any

import pytest

from stackyard.clients.proxmox.access import (
    AccessCall,
    AccessRequest,
    PresentAccess,
    TokenAnswerError,
    make_access,
    plan_access,
    read_access,
)

REQUEST = AccessRequest(
    role="Runner", user="run@pve", token="site", privileges=("VM.Audit", "VM.Old"), comment="Runs"
)
KNOWN = {"Administrator": frozenset(("VM.Audit", "VM.Allocate"))}
COMPLETE = PresentAccess(
    roles={**KNOWN, "Runner": frozenset(("VM.Audit",))},
    users=frozenset(("run@pve",)),
    tokens={"site": True},
    entries=frozenset((("/", "run@pve", "Runner"), ("/", "run@pve!site", "Runner"))),
)


def commands(present: PresentAccess, *, renews: bool = False) -> list[str]:
    return [call.command for call in plan_access(REQUEST, present, renews=renews)]


def test_everything_is_planned_where_nothing_is_there() -> None:
    assert commands(PresentAccess(roles=KNOWN)) == [
        "pveum role add Runner --privs VM.Audit",
        "pveum user add run@pve --comment Runs",
        "pveum acl modify / --users run@pve --roles Runner",
        "pveum user token add run@pve site --privsep 1",
        "pveum acl modify / --tokens 'run@pve!site' --roles Runner",
    ]


def test_nothing_is_planned_where_everything_is_there() -> None:
    assert commands(COMPLETE) == []


def test_a_renewal_replaces_the_token_and_gives_it_its_role_again() -> None:
    assert commands(COMPLETE, renews=True) == [
        "pveum user token delete run@pve site",
        "pveum user token add run@pve site --privsep 1",
        "pveum acl modify / --tokens 'run@pve!site' --roles Runner",
    ]


def test_a_role_that_differs_is_changed_and_says_how() -> None:
    present = PresentAccess(
        roles={**KNOWN, "Runner": frozenset(("VM.Allocate",))},
        users=COMPLETE.users,
        tokens=COMPLETE.tokens,
        entries=COMPLETE.entries,
    )
    [call] = plan_access(REQUEST, present)
    assert (call.method, call.path) == ("PUT", "/access/roles/Runner")
    assert call.what == "change the role Runner: add VM.Audit; take away VM.Allocate"


def test_a_token_with_all_privileges_of_its_user_is_limited() -> None:
    present = PresentAccess(
        roles=COMPLETE.roles, users=COMPLETE.users, tokens={"site": False}, entries=COMPLETE.entries
    )
    assert commands(present) == ["pveum user token modify run@pve site --privsep 1"]


class Recorded:
    """Answers calls from a table and keeps them."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.calls: list[str] = []

    async def perform(self, call: AccessCall) -> Any:
        self.calls.append(f"{call.method} {call.path}")
        return self.answers.get(call.path.rpartition("/")[2], [])


async def test_what_there_is_is_read_without_asking_for_tokens_of_nobody() -> None:
    backend = Recorded(roles=[{"roleid": "A", "privs": "x,y"}], users=[{"userid": "root@pam"}])
    present = await read_access(backend, REQUEST)
    assert present.privileges == {"x", "y"}
    assert backend.calls == ["GET /access/roles", "GET /access/users", "GET /access/acl"]


async def test_a_token_without_a_secret_in_the_answer_is_an_error() -> None:
    calls = plan_access(REQUEST, PresentAccess(roles=KNOWN))
    with pytest.raises(TokenAnswerError):
        await make_access(Recorded(site={"info": {}}), REQUEST, calls)
    assert await make_access(Recorded(site={"value": "s"}), REQUEST, calls) == "run@pve!site=s"
