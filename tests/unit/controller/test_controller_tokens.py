"""Signed tokens: scoped, short-lived, listed, revoked, rotated; forged ones are told."""

from __future__ import annotations

import base64
import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from tests.support.site_store import overwrite, put_sealed, read_sealed

from stackyard.base.errors import UsageError
from stackyard.clients.objects import MemoryObjects, open_objects
from stackyard.clients.objects.sealed import make_master_key
from stackyard.controller.tokens import (
    MemoryStore,
    TokenError,
    TokenObjects,
    TokenRefusal,
    Tokens,
    TokenStore,
    spell,
)
from stackyard.controller.tokens.claims import read_unverified_claims
from stackyard.controller.tokens.store import TokenStoreError
from stackyard.sources.store import ChosenStore
from stackyard.sources.store.pool import lend_store

HOUR_S = 3600.0


class Clock:
    """A time of day that a test moves."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=["memory", "store"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> TokenStore:
    return MemoryStore() if request.param == "memory" else TokenObjects(ChosenStore(base=tmp_path / "kept"))


def refusal(tokens: Tokens, token: str) -> TokenRefusal | None:
    try:
        tokens.check(token)
    except TokenError as err:
        return err.refusal
    return None


def test_a_token_opens_what_it_names_and_nothing_else(store: TokenStore) -> None:
    tokens = Tokens(store)
    node, _ = tokens.issue(node="web1")
    claims = tokens.check(node)
    assert claims.opens_spec("web1", "web")
    assert not claims.opens_spec("web2", "web")
    assert not claims.opens_repository("bootstrap")
    spec = tokens.check(tokens.issue(spec="web")[0])
    assert (spec.opens_spec("web1", "web"), spec.opens_spec("web1", "db")) == (True, False)
    both = tokens.check(tokens.issue(node="web1", spec="web")[0])
    assert (both.opens_spec("web1", "web"), both.opens_spec("web1", "db")) == (True, False)
    repo = tokens.check(tokens.issue(repo="bootstrap")[0])
    assert (repo.opens_repository("bootstrap"), repo.opens_repository("other")) == (True, False)
    assert not repo.opens_spec("web1", "web")
    assert tokens.check(tokens.issue(repo="*")[0]).opens_repository("anything")


def test_a_token_ends_by_itself(store: TokenStore) -> None:
    clock = Clock()
    tokens = Tokens(store, clock=clock)
    token, issued = tokens.issue(node="a", lasts_s=HOUR_S)
    clock.now = issued.expires_at - 1
    assert refusal(tokens, token) is None
    clock.now = issued.expires_at
    assert refusal(tokens, token) is TokenRefusal.EXPIRED
    assert tokens.all() == ()


def test_a_token_from_the_future_does_not_count(store: TokenStore) -> None:
    clock = Clock()
    tokens = Tokens(store, clock=clock)
    token, _ = tokens.issue(node="a")
    clock.now -= HOUR_S
    assert refusal(tokens, token) is TokenRefusal.NOT_YET


def test_a_revoked_token_ends_at_once_and_others_stay(store: TokenStore) -> None:
    tokens = Tokens(store)
    (bad, issued), (good, _) = tokens.issue(node="a"), tokens.issue(node="b")
    tokens.revoke(issued.id)
    assert (refusal(tokens, bad), refusal(tokens, good)) == (TokenRefusal.REVOKED, None)
    assert [one.revoked_at is not None for one in sorted(tokens.all(), key=lambda one: one.node)] == [
        True,
        False,
    ]
    with pytest.raises(TokenError, match="no token"):
        tokens.revoke("0" * 16)


def test_a_rotated_key_counts_for_the_overlap_and_no_longer(store: TokenStore) -> None:
    clock = Clock()
    tokens = Tokens(store, clock=clock)
    old, _ = tokens.issue(node="a", lasts_s=100 * HOUR_S)
    tokens.rotate(overlap_s=HOUR_S)
    new, _ = tokens.issue(node="a", lasts_s=100 * HOUR_S)
    assert (refusal(tokens, old), refusal(tokens, new)) == (None, None)
    assert read_unverified_claims(old).key != read_unverified_claims(new).key
    clock.now += HOUR_S
    assert (refusal(tokens, old), refusal(tokens, new)) == (TokenRefusal.UNKNOWN_KEY, None)
    tokens.rotate(overlap_s=0)
    assert refusal(tokens, new) is TokenRefusal.UNKNOWN_KEY


def test_a_second_rotation_does_not_make_the_first_key_last_longer(store: TokenStore) -> None:
    clock = Clock()
    tokens = Tokens(store, clock=clock)
    first, _ = tokens.issue(node="a", lasts_s=1000 * HOUR_S)
    tokens.rotate(overlap_s=HOUR_S)
    tokens.rotate(overlap_s=100 * HOUR_S)
    clock.now += 2 * HOUR_S
    assert refusal(tokens, first) is TokenRefusal.UNKNOWN_KEY


def test_the_key_of_the_site_alone_signs_and_its_change_ends_tokens_at_once(store: TokenStore) -> None:
    own = Tokens(store)
    own_token, _ = own.issue(node="a")
    tokens = Tokens(store, site_key="ab" * 32)
    token, _ = tokens.issue(node="a")
    assert refusal(tokens, token) is None
    assert refusal(tokens, own_token) is TokenRefusal.UNKNOWN_KEY
    with pytest.raises(UsageError, match="signing_key"):
        tokens.rotate(overlap_s=HOUR_S)
    tokens.use_site_key("cd" * 32)
    assert refusal(tokens, token) is TokenRefusal.UNKNOWN_KEY


def changed_payload(token: str, **claims: object) -> str:
    payload, _, signature = token.partition(".")
    found = orjson.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    again = base64.urlsafe_b64encode(orjson.dumps({**found, **claims})).rstrip(b"=").decode()
    return f"{again}.{signature}"


FORGERIES: dict[str, Callable[[str], str]] = {
    "another node": lambda token: changed_payload(token, n="b"),
    "more time": lambda token: changed_payload(token, exp=9e9),
    "another number": lambda token: changed_payload(token, jti="f" * 16),
    "another key": lambda token: changed_payload(token, kid="000000000000"),
    "another version": lambda token: changed_payload(token, v=1),
    "no node": lambda token: changed_payload(token, n=None),
    "a list for a node": lambda token: changed_payload(token, n=["a", "b"]),
    "no signature": lambda token: token.partition(".")[0] + ".",
    "no dot": lambda token: token.partition(".")[0],
    "half a signature": lambda token: token[:-10],
    "a longer signature": lambda token: token + "AAAA",
    "padding": lambda token: token + "=",
    "spaces": lambda token: f" {token}",
    "a third part": lambda token: f"{token}.x",
    "nothing": lambda token: "",
    "a lone surrogate": lambda token: f"\udcff{token}",
    "very long": lambda token: "a" * 100_000 + ".b",
    "not a number": lambda token: changed_payload(token, exp="never"),
}


@pytest.mark.parametrize("how", FORGERIES)
def test_a_forged_token_does_not_count(how: str) -> None:
    tokens = Tokens(MemoryStore())
    token, _ = tokens.issue(node="a")
    forged = FORGERIES[how](token)
    assert forged != token
    assert refusal(tokens, forged) in (TokenRefusal.FORGED, TokenRefusal.MALFORMED, TokenRefusal.UNKNOWN_KEY)


def test_a_token_signed_with_a_guessed_key_does_not_count() -> None:
    tokens = Tokens(MemoryStore())
    token, _ = tokens.issue(node="a")
    claims = replace(read_unverified_claims(token), node="b")
    assert refusal(tokens, spell(claims, b"\0" * 32)) is TokenRefusal.FORGED


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"node": "../a"},
        {"node": "a b"},
        {"repo": "*x y"},
        {"node": "a", "lasts_s": 0},
        {"node": "a", "lasts_s": 1e9},
    ],
)
def test_a_token_that_makes_no_sense_is_not_issued(wanted: dict[str, object]) -> None:
    with pytest.raises(TokenError):
        Tokens(MemoryStore()).issue(**wanted)  # type: ignore[arg-type]


def test_expired_tokens_and_retired_keys_are_forgotten(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path
    tokens = Tokens(TokenObjects(ChosenStore(base=path)), clock=clock)
    tokens.issue(node="a", lasts_s=HOUR_S)
    tokens.rotate(overlap_s=HOUR_S)
    clock.now += 2 * HOUR_S
    tokens.issue(node="b")
    kept = orjson.loads(read_sealed(path, LIST))
    assert [one["node"] for one in kept["issued"]] == ["b"]
    assert len(kept["keys"]) == 1


def test_what_one_process_revokes_another_one_refuses_at_once(tmp_path: Path) -> None:
    path = tmp_path
    here, there = Tokens(TokenObjects(ChosenStore(base=path))), Tokens(TokenObjects(ChosenStore(base=path)))
    token, issued = here.issue(node="a")
    assert refusal(there, token) is None
    here.revoke(issued.id)
    assert refusal(there, token) is TokenRefusal.REVOKED


def test_no_token_is_lost_when_many_issue_at_once(tmp_path: Path) -> None:
    path = tmp_path
    made: list[str] = []

    def issue(number: int) -> None:
        made.append(Tokens(TokenObjects(ChosenStore(base=path))).issue(node=f"n{number}")[0])

    threads = [threading.Thread(target=issue, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tokens = Tokens(TokenObjects(ChosenStore(base=path)))
    assert {one.node for one in tokens.all()} == {f"n{number}" for number in range(12)}
    assert [refusal(tokens, token) for token in made] == [None] * 12


def test_the_list_is_sealed_and_holds_no_token(tmp_path: Path) -> None:
    token, _ = Tokens(TokenObjects(ChosenStore(base=tmp_path))).issue(node="a")
    assert token.partition(".")[2].encode() not in read_sealed(tmp_path, LIST)
    with contextlib.closing(open_objects(tmp_path / "state")) as objects:
        stored = objects.get(LIST)
    assert stored is not None
    assert b"secret" not in stored.data


def test_a_damaged_file_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path
    for text in ("", "{", '{"keys": [{}], "issued": []}', "[]"):
        put_sealed(path, LIST, text.encode())
        with pytest.raises(Exception, match="is not valid"):
            TokenObjects(ChosenStore(base=path)).read()


SITE_KEY = "ab" * 32
LIST = "controller/tokens"


def lose(path: Path, how: str, earlier: bytes) -> None:
    """Do what the remedy of a damaged list says, or what else happens to a file."""
    if how == "removed":
        overwrite(path, LIST, None)
    elif how == "damaged, and removed as its remedy says":
        put_sealed(path, LIST, b"{")
        with pytest.raises(TokenStoreError) as caught:
            TokenObjects(ChosenStore(base=path)).read()
        assert caught.value.remedy is not None
        assert "Remove this one object" in caught.value.remedy
        overwrite(path, LIST, None)
    elif how == "an older copy is back":
        put_sealed(path, LIST, earlier)
    else:
        document = orjson.loads(earlier)
        old = {"format": 1, "keys": document["keys"], "issued": document["issued"]}
        put_sealed(path, LIST, orjson.dumps(old))


@pytest.mark.parametrize("is_running", [True, False])
@pytest.mark.parametrize(
    "how",
    [
        *("removed", "damaged, and removed as its remedy says"),
        *("an older copy is back", "an older copy of an earlier version is back"),
    ],
)
def test_a_lost_list_brings_no_revoked_token_back(tmp_path: Path, how: str, is_running: bool) -> None:
    """The key of the site outlives the list, so that every signature is still right."""
    path = tmp_path
    tokens = Tokens(TokenObjects(ChosenStore(base=path)), site_key=SITE_KEY)
    (bad, issued), (good, _) = tokens.issue(node="a"), tokens.issue(node="b")
    earlier = read_sealed(path, LIST)
    tokens.revoke(issued.id)
    assert (refusal(tokens, bad), refusal(tokens, good)) == (TokenRefusal.REVOKED, None)
    lose(path, how, earlier)
    after = tokens if is_running else Tokens(TokenObjects(ChosenStore(base=path)), site_key=SITE_KEY)
    assert [refusal(after, token) for token in (bad, good)] == [TokenRefusal.REVOKED] * 2
    new, _ = after.issue(node="a")
    assert [refusal(after, token) for token in (bad, good, new)] == [*[TokenRefusal.REVOKED] * 2, None]
    again = Tokens(TokenObjects(ChosenStore(base=path)), site_key=SITE_KEY)
    assert [refusal(again, token) for token in (bad, good, new)] == [*[TokenRefusal.REVOKED] * 2, None]
    # Lost twice: what was issued in between ends too.
    overwrite(path, LIST, None)
    assert [refusal(again, token) for token in (bad, good, new)] == [TokenRefusal.REVOKED] * 3


@pytest.mark.parametrize("text", ["", "{", "[]", '{"changed_at": "never"}', '{"changed_at": null}'])
def test_a_list_that_is_lost_with_a_damaged_mark_ends_every_token(tmp_path: Path, text: str) -> None:
    path = tmp_path
    tokens = Tokens(TokenObjects(ChosenStore(base=path)), site_key=SITE_KEY)
    bad, issued = tokens.issue(node="a")
    tokens.revoke(issued.id)
    overwrite(path, LIST, None)
    overwrite(tmp_path, "controller/tokens-changed", text.encode())
    assert refusal(tokens, bad) is TokenRefusal.REVOKED
    new, _ = tokens.issue(node="a")
    assert (refusal(tokens, bad), refusal(tokens, new)) == (TokenRefusal.REVOKED, None)


def test_a_clock_that_was_set_back_neither_ends_new_tokens_nor_opens_old_ones(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path
    tokens = Tokens(TokenObjects(ChosenStore(base=path), clock=clock), site_key=SITE_KEY, clock=clock)
    bad, issued = tokens.issue(node="a")
    tokens.revoke(issued.id)
    overwrite(path, LIST, None)
    clock.now -= 30
    new, _ = tokens.issue(node="a")
    assert (refusal(tokens, bad), refusal(tokens, new)) == (TokenRefusal.REVOKED, None)


def test_a_token_of_another_machine_with_the_key_of_the_site_still_counts(tmp_path: Path) -> None:
    there = Tokens(TokenObjects(ChosenStore(base=tmp_path / "there")), site_key=SITE_KEY)
    here = Tokens(TokenObjects(ChosenStore(base=tmp_path / "here")), site_key=SITE_KEY)
    token, _ = there.issue(node="a")
    assert refusal(here, token) is None
    here.issue(node="b")
    assert refusal(here, token) is None


def test_a_list_that_is_changed_all_the_time_never_looks_lost(tmp_path: Path) -> None:
    path = tmp_path
    here, there = (
        Tokens(TokenObjects(ChosenStore(base=path)), site_key=SITE_KEY),
        Tokens(TokenObjects(ChosenStore(base=path)), site_key=SITE_KEY),
    )
    token, _ = here.issue(node="a")
    has_ended = threading.Event()

    def issue() -> None:
        for number in range(60):
            here.issue(node=f"n{number}")
        has_ended.set()

    thread = threading.Thread(target=issue)
    thread.start()
    refusals = set()
    while not has_ended.is_set():
        refusals.add(refusal(there, token))
    thread.join()
    assert refusals == {None}


def test_what_another_machine_revokes_is_refused_a_second_later(tmp_path: Path) -> None:
    key = make_master_key()
    with lend_store("test://shared", MemoryObjects(), key):
        here, there = (
            Tokens(
                TokenObjects(ChosenStore(base=tmp_path / name, address="test://shared", site_key=key)),
                site_key=SITE_KEY,
            )
            for name in ("here", "there")
        )
        token, issued = here.issue(node="a")
        assert refusal(there, token) is None
        here.revoke(issued.id)
        until = time.monotonic() + 5
        while refusal(there, token) is None and time.monotonic() < until:
            time.sleep(0.05)
        assert refusal(there, token) is TokenRefusal.REVOKED
