"""Who may use the objects of a store over HTTP: the right `store`, by the state that an object belongs to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.object_service import ObjectService, object_service

from stackyard.clients.objects import (
    ABSENT,
    ANYTHING,
    MemoryObjects,
    StoreDeniedError,
    StoreError,
    StoreReadOnlyError,
)
from stackyard.state import Access, Actor, Principal, Right
from stackyard.state.store_rights import may_read, may_watch, may_write

ME = Actor(principal="tests")
OF_A_STATE = (
    *("heads", "data", "targets", "journal", "operator", "operator-locks", "guests", "inventory", "plans"),
    *("cluster-etcd", "cluster-locks", "inner"),
)
RUN = "0123456789ab"
RECORD = f"records/98205065599999999-{RUN},apply,"
HASH = "0" * 64


def principal(*prefixes: str, right: Right = Right.STORE) -> Principal:
    return Principal(name="machine", access=tuple(Access(prefix=one, rights=(right,)) for one in prefixes))


KEYS = {
    **{f"{first}/prod!web": "prod/web" for first in OF_A_STATE},
    **{f"{first}/prod!web/bodies/{HASH}": "prod/web" for first in OF_A_STATE},
    **{f"{first}/production": "production" for first in OF_A_STATE},
    **{f"{first}/prod": "prod" for first in OF_A_STATE},
    f"{RECORD}prod!web": "prod/web",
    f"{RECORD}production": "production",
    # A comma may be in the name of a state.
    f"{RECORD}blue,prod!web": "blue,prod/web",
    f"{RECORD}prod!blue,green": "prod/blue,green",
}
# What the right on all states is needed for.
OF_THE_STORE = (
    "controller/jobs/1",
    "controller",
    "heads",
    "runs",
    "records/no-comma",
    "records/comma-at-the-end,",
    "records/2026-01-02,apply,prod!web",
    RECORD,
    "system",
    "checks/1",
    "headsX/prod!web",
    "Heads/prod!web",
)
OF_EVERYONE = ("runs/0123", "run-events/0123/1", "run-control/0123", "ssh/known_hosts", "system/checks/1")
OF_ADMINISTRATORS = (
    *("system/principals", "system/audit", "system/audit-log/00000001", "system/health", "system/other"),
    "run-owners/0123",
)
SITE = "system/site"


def may_use(who: Principal, key: str) -> bool:
    """Return whether a principal may read and write an object."""
    assert may_read(who, key) == may_write(who, key)
    return may_read(who, key)


@pytest.mark.parametrize("key", KEYS)
def test_an_object_of_a_state_is_for_those_above_the_state(key: str) -> None:
    state = KEYS[key]
    assert may_use(principal(""), key)
    assert may_use(principal(state), key)
    assert may_use(principal("other", state), key)
    assert may_use(principal("prod"), key) == (f"{state}/".startswith("prod/"))
    for other in ("pro", f"{state}/below", "web", "other"):
        assert not may_use(principal(other), key), other


@pytest.mark.parametrize("key", OF_EVERYONE)
def test_an_object_of_runs_is_for_everyone_with_the_right_anywhere(key: str) -> None:
    assert may_use(principal("anything"), key)
    assert may_use(principal(""), key)
    assert not may_use(principal("", right=Right.WRITE), key)


@pytest.mark.parametrize("key", OF_THE_STORE)
def test_every_other_object_needs_the_right_on_all_states(key: str) -> None:
    assert may_use(principal(""), key)
    for prefix in ("prod", "system", "controller", "principals", "heads"):
        assert not may_use(principal(prefix), key)


@pytest.mark.parametrize("key", OF_ADMINISTRATORS)
def test_who_may_do_what_and_what_was_done_is_for_administrators_of_all_states(key: str) -> None:
    assert may_use(principal("", right=Right.ADMIN), key)
    assert not may_use(principal(""), key)
    assert not may_use(principal("system", right=Right.ADMIN), key)
    assert not may_watch(principal(""), key)


def test_whose_store_it_is_is_read_by_everyone_and_written_with_the_right_on_all_states() -> None:
    assert may_read(principal("prod"), SITE)
    assert may_watch(principal("prod"), SITE)
    assert not may_write(principal("prod"), SITE)
    assert may_use(principal(""), SITE)
    assert not may_read(principal("", right=Right.WRITE), SITE)


@pytest.mark.parametrize("right", [one for one in Right if one not in (Right.STORE, Right.ADMIN)])
def test_no_other_right_opens_an_object_but_that_of_the_administrator(right: Right) -> None:
    for key in (*KEYS, *OF_EVERYONE, *OF_THE_STORE, *OF_ADMINISTRATORS, SITE):
        assert not may_use(principal("", right=right), key)
        assert may_use(principal("", right=Right.ADMIN), key)


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("heads/prod!web", True),
        ("heads/prod!", True),
        ("heads/prod", True),
        ("heads/pro", True),
        ("heads/", True),
        ("heads/prod!web/x", True),
        ("heads/production", False),
        ("heads/pro/x", False),
        ("heads/other", False),
        ("runs/", True),
        ("run-control/1", True),
        ("records/", True),
        ("heads", False),
        ("", False),
        ("system/", False),
        ("controller/", False),
    ],
)
def test_a_watch_is_for_those_who_may_use_what_could_be_there(prefix: str, expected: bool) -> None:
    assert may_watch(principal("prod"), prefix) == expected
    assert may_watch(principal(""), prefix)
    assert not may_watch(principal("prod", right=Right.READ), prefix)


# --- Over HTTP


@pytest.fixture
def service() -> Iterator[ObjectService]:
    with object_service(MemoryObjects()) as made:
        for key in (*KEYS, *OF_EVERYONE, *OF_THE_STORE, *OF_ADMINISTRATORS, SITE):
            if key not in ("system/principals", "system/audit", "system", "runs", "heads", "controller"):
                made.service.objects.put(key, key.encode(), expect=ABSENT)
        yield made


def token_for(service: ObjectService, *access: Access) -> str:
    return service.service.principals.add("machine", access, ME)[1]


def test_a_list_holds_only_what_the_reader_may_see(service: ObjectService) -> None:
    objects = service.open(token_for(service, Access(prefix="prod/web", rights=(Right.STORE,))))
    expected = {key for key, state in KEYS.items() if state == "prod/web"} | {*OF_EVERYONE, SITE}
    assert {one.key for one in objects.list("")} == expected
    paged: list[str] = []
    while page := objects.list("", after=paged[-1] if paged else "", limit=3):
        assert len(page) <= 3
        paged += [one.key for one in page]
    assert (len(paged), set(paged)) == (len(expected), expected)
    assert [one.key for one in objects.list("system/")] == ["system/checks/1", SITE]


def test_a_list_for_all_states_holds_nothing_of_administrators(service: ObjectService) -> None:
    objects = service.open(token_for(service, Access(rights=(Right.STORE,))))
    listed = {one.key for one in objects.list("")}
    assert listed >= {*KEYS, *OF_EVERYONE, SITE}
    assert not listed & {*OF_ADMINISTRATORS}


def test_a_token_with_the_right_on_all_states_cannot_make_itself_an_administrator(
    service: ObjectService,
) -> None:
    objects = service.open(token_for(service, Access(rights=(Right.STORE,))))
    for key in OF_ADMINISTRATORS:
        for action in (
            lambda key=key: objects.put(key, b"", expect=ANYTHING),
            lambda key=key: objects.put("heads/x", b"", expect=ANYTHING, before={key: b""}),
            lambda key=key: objects.delete(key),
        ):
            with pytest.raises(StoreReadOnlyError, match="machine lacks the right admin on all states"):
                action()
        with pytest.raises(StoreDeniedError, match="machine lacks the right admin on all states"):
            objects.get(key)


def test_a_list_of_many_objects_of_others_ends(service: ObjectService) -> None:
    for number in range(12_000):
        service.service.objects.put(f"heads/other!{number:05d}", b"", expect=ABSENT)
    objects = service.open(token_for(service, Access(prefix="prod", rights=(Right.STORE,))))
    assert [one.key for one in objects.list("heads/")] == [
        "heads/prod",
        "heads/prod!web",
        f"heads/prod!web/bodies/{HASH}",
    ]


def test_what_is_refused_is_an_error_that_names_who_lacks_what(service: ObjectService) -> None:
    objects = service.open(token_for(service, Access(prefix="prod/web", rights=(Right.STORE,))))
    inner = service.service.objects
    tag = inner.get("heads/production").tag  # type: ignore[union-attr]
    for key, owner in (("heads/production", "the state production"), ("controller/jobs/1", "all states")):
        with pytest.raises(StoreDeniedError, match=f"machine lacks the right store on {owner}"):
            objects.get(key)
        for action in (
            lambda key=key: objects.put(key, b"", expect=ANYTHING),
            lambda key=key: objects.put(key, b"", expect=tag),
            lambda key=key: objects.delete(key),
            lambda key=key: objects.put("heads/prod!web", b"", expect=ANYTHING, before={key: b""}),
        ):
            with pytest.raises(StoreReadOnlyError, match=f"machine lacks the right store on {owner}"):
                action()
    with pytest.raises(StoreDeniedError, match="machine"), objects.watch("system/"):
        pass
    assert inner.get("heads/production").data == b"heads/production"  # type: ignore[union-attr]
    assert inner.get("heads/prod!web").data == b"heads/prod!web"  # type: ignore[union-attr]


def test_a_token_without_the_right_cannot_open_the_store(service: ObjectService) -> None:
    token = token_for(service, Access(rights=(Right.READ, Right.WRITE, Right.LOCK, Right.BREAK)))
    with pytest.raises(StoreDeniedError, match="machine lacks the right store"):
        service.open(token)


def test_the_right_does_not_open_the_protocol_of_states(service: ObjectService) -> None:
    """It is for machines that run stackyard: an engine needs its own rights."""
    machine = principal("")
    assert [right for right in Right if machine.may(right, "prod/web")] == [Right.STORE]


def test_the_engines_of_a_run_reach_no_objects() -> None:
    with object_service(MemoryObjects(), is_own=True) as service, pytest.raises(StoreError):
        service.open()
