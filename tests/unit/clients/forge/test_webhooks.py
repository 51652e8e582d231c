"""Deliveries of webhooks: proven, whole, understood, or refused."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackyard.clients.forge.failures import WebhookRefusedError
from stackyard.clients.forge.model import EventKind, ForgeKind, WebhookEvent
from stackyard.clients.forge.webhooks import LARGEST_WEBHOOK_BYTES, read_webhook

SECRET = "only the forge and we know"
KINDS = pytest.mark.parametrize("kind", list(ForgeKind))
COMMIT = "4f" * 20
NAMES = {
    ForgeKind.GITEA: ("X-Gitea-Event", "X-Gitea-Delivery", "X-Gitea-Signature"),
    ForgeKind.GITHUB: ("X-GitHub-Event", "X-GitHub-Delivery", "X-Hub-Signature-256"),
    ForgeKind.GITLAB: ("X-Gitlab-Event", "Idempotency-Key", "X-Gitlab-Token"),
}
PUSHES = {ForgeKind.GITEA: "push", ForgeKind.GITHUB: "push", ForgeKind.GITLAB: "Push Hook"}
NAMED = {"repository": {"full_name": "yard/infra"}, "sender": {"login": "author"}}
GITLAB = {"project": {"path_with_namespace": "yard/infra"}, "user": {"username": "author"}}


def sign(kind: ForgeKind, body: bytes, secret: str = SECRET) -> str:
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {ForgeKind.GITEA: digest, ForgeKind.GITHUB: f"sha256={digest}"}.get(kind, secret)


def make_headers(kind: ForgeKind, event: str, body: bytes, **changes: str) -> dict[str, str]:
    names = NAMES[kind]
    headers = dict(zip(names, (event, "d-1", sign(kind, body)), strict=True))
    return {"Content-Type": "application/json", **headers} | changes


def read(kind: ForgeKind, event: str, document: Any) -> WebhookEvent:
    body = json.dumps(document).encode()
    return read_webhook(kind, make_headers(kind, event, body), body, SECRET)


def make_push(**changes: Any) -> dict[str, Any]:
    return {"ref": "refs/heads/main", "after": COMMIT, "user_username": "author", **NAMED, **GITLAB} | changes


@KINDS
def test_push_names_branch_commit_and_author(kind: ForgeKind) -> None:
    assert read(kind, PUSHES[kind], make_push()) == WebhookEvent(
        delivery="d-1",
        kind=EventKind.PUSH,
        repository="yard/infra",
        branch="main",
        commit=COMMIT,
        author="author",
    )


@KINDS
def test_removed_branch_has_no_commit_and_a_tag_is_no_branch(kind: ForgeKind) -> None:
    assert read(kind, PUSHES[kind], make_push(after="0" * 40)).commit == ""
    assert read(kind, PUSHES[kind], make_push(ref="refs/tags/v1")).kind is EventKind.OTHER


@pytest.mark.parametrize(
    ("kind", "event", "expected"),
    [
        (ForgeKind.GITEA, "pull_request", EventKind.PULL_REQUEST),
        (ForgeKind.GITEA, "pull_request_approved", EventKind.REVIEW),
        (ForgeKind.GITEA, "pull_request_rejected", EventKind.REVIEW),
        (ForgeKind.GITEA, "pull_request_comment", EventKind.REVIEW),
        (ForgeKind.GITHUB, "pull_request", EventKind.PULL_REQUEST),
        (ForgeKind.GITHUB, "pull_request_review", EventKind.REVIEW),
    ],
)
def test_events_of_a_pull_request_name_it_and_its_head(
    kind: ForgeKind, event: str, expected: EventKind
) -> None:
    document = {"action": "opened", "pull_request": {"number": 7, "head": {"sha": COMMIT}}, **NAMED}
    found = read(kind, event, document)
    assert (found.kind, found.number, found.commit, found.action) == (expected, 7, COMMIT, "opened")


@pytest.mark.parametrize("kind", [ForgeKind.GITEA, ForgeKind.GITHUB])
def test_comment_names_itself_and_its_pull_request(kind: ForgeKind) -> None:
    document = {"action": "created", "issue": {"number": 7}, "comment": {"id": 99}, **NAMED}
    found = read(kind, "issue_comment", document)
    assert (found.kind, found.number, found.comment) == (EventKind.COMMENT, 7, 99)


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("open", EventKind.PULL_REQUEST),
        ("update", EventKind.PULL_REQUEST),
        ("merge", EventKind.PULL_REQUEST),
        ("approved", EventKind.REVIEW),
        ("unapproved", EventKind.REVIEW),
        ("approval", EventKind.REVIEW),
    ],
)
def test_gitlab_tells_approvals_as_merge_requests(action: str, expected: EventKind) -> None:
    about = {"iid": 7, "action": action, "last_commit": {"id": COMMIT}}
    found = read(ForgeKind.GITLAB, "Merge Request Hook", {"object_attributes": about, **GITLAB})
    assert (found.kind, found.number, found.commit, found.author) == (expected, 7, COMMIT, "author")


def test_note_of_gitlab_is_a_comment_where_it_is_of_a_merge_request() -> None:
    about = {"id": 99, "noteable_type": "MergeRequest"}
    document = {"object_attributes": about, "merge_request": {"iid": 7}, **GITLAB}
    found = read(ForgeKind.GITLAB, "Note Hook", document)
    assert (found.kind, found.number, found.comment) == (EventKind.COMMENT, 7, 99)
    document["object_attributes"] = {"id": 99, "noteable_type": "Commit"}
    assert read(ForgeKind.GITLAB, "Note Hook", document).kind is EventKind.OTHER


@KINDS
def test_unknown_event_is_another_one(kind: ForgeKind) -> None:
    assert read(kind, "star", {}).kind is EventKind.OTHER


def test_ping_of_github_is_told() -> None:
    assert read(ForgeKind.GITHUB, "ping", {"zen": "Keep it simple."}).kind is EventKind.PING


@KINDS
def test_forged_delivery_is_refused(kind: ForgeKind) -> None:
    body = json.dumps(make_push()).encode()
    proof = NAMES[kind][2]
    good = make_headers(kind, PUSHES[kind], body)
    other = sign(kind, body, "another secret")
    for bad in (
        other,
        other.upper(),
        "",
        "sha256=",
        good[proof][:-1],
        f"{good[proof]}0",
        "é",
        "\udcff",
        "none",
    ):
        with pytest.raises(WebhookRefusedError, match="signature"):
            read_webhook(kind, {**good, proof: bad}, body, SECRET)
    del good[proof]
    with pytest.raises(WebhookRefusedError, match="no signature"):
        read_webhook(kind, good, body, SECRET)


@pytest.mark.parametrize("kind", [ForgeKind.GITEA, ForgeKind.GITHUB])
def test_changed_body_is_refused(kind: ForgeKind) -> None:
    body = json.dumps(make_push()).encode()
    headers = make_headers(kind, "push", body)
    for changed in (body[:-1], body + b" ", body.replace(b"main", b"mein")):
        with pytest.raises(WebhookRefusedError, match="signature"):
            read_webhook(kind, headers, changed, SECRET)


@KINDS
def test_signature_of_another_forge_proves_nothing(kind: ForgeKind) -> None:
    body = json.dumps(make_push()).encode()
    for other in set(ForgeKind) - {kind}:
        with pytest.raises(WebhookRefusedError):
            read_webhook(kind, make_headers(other, PUSHES[other], body), body, SECRET)


@KINDS
def test_server_without_a_secret_takes_nothing(kind: ForgeKind) -> None:
    body = b"{}"
    names = NAMES[kind]
    headers = {names[0]: "push", names[1]: "d-1", names[2]: sign(kind, body, "")}
    with pytest.raises(WebhookRefusedError, match="no secret"):
        read_webhook(kind, headers, body, "")


@KINDS
def test_delivery_that_was_cut_off_is_refused(kind: ForgeKind) -> None:
    body = json.dumps(make_push()).encode()[:-5]
    headers = make_headers(kind, PUSHES[kind], body)
    with pytest.raises(WebhookRefusedError, match="whole"):
        read_webhook(kind, headers, body, SECRET)
    headers["Content-Length"] = str(len(body) + 5)
    with pytest.raises(WebhookRefusedError, match="cut off"):
        read_webhook(kind, headers, body, SECRET)


@KINDS
def test_oversized_delivery_is_refused_before_it_is_read(kind: ForgeKind) -> None:
    body = b"[" * (LARGEST_WEBHOOK_BYTES + 1)
    with pytest.raises(WebhookRefusedError, match="larger"):
        read_webhook(kind, {}, body, SECRET)


@KINDS
@pytest.mark.parametrize("changes", [{"x-event": "1"}, {"content-type": "1"}])
def test_header_with_two_values_is_refused(kind: ForgeKind, changes: dict[str, str]) -> None:
    body = json.dumps(make_push()).encode()
    headers = make_headers(kind, PUSHES[kind], body, **{"X-Event": "2"}, **changes)
    with pytest.raises(WebhookRefusedError, match="twice"):
        read_webhook(kind, headers, body, SECRET)


@KINDS
def test_form_is_refused_with_what_to_choose(kind: ForgeKind) -> None:
    body = b"payload=%7B%7D"
    headers = make_headers(kind, PUSHES[kind], body) | {"Content-Type": "application/x-www-form-urlencoded"}
    with pytest.raises(WebhookRefusedError) as caught:
        read_webhook(kind, headers, body, SECRET)
    assert "application/json" in caught.value.remedy


@KINDS
def test_same_delivery_has_the_same_name_when_it_is_sent_again(kind: ForgeKind) -> None:
    body = json.dumps(make_push()).encode()
    headers = make_headers(kind, PUSHES[kind], body)
    first, again = (read_webhook(kind, headers, body, SECRET) for _ in range(2))
    assert first.delivery == again.delivery == "d-1"


def test_gitlab_without_names_of_deliveries_is_told_apart_by_what_it_sends() -> None:
    names = []
    for after in (COMMIT, COMMIT, "5e" * 20):
        body = json.dumps(make_push(after=after)).encode()
        headers = make_headers(ForgeKind.GITLAB, "Push Hook", body)
        del headers["Idempotency-Key"]
        names.append(read_webhook(ForgeKind.GITLAB, headers, body, SECRET).delivery)
    assert names[0] == names[1] != names[2]


@pytest.mark.parametrize("kind", [ForgeKind.GITEA, ForgeKind.GITHUB])
@pytest.mark.parametrize("delivery", ["", "a/b", "x" * 101, "../1"])
def test_delivery_without_a_name_is_refused(kind: ForgeKind, delivery: str) -> None:
    body = json.dumps(make_push()).encode()
    headers = make_headers(kind, "push", body) | {NAMES[kind][1]: delivery}
    with pytest.raises(WebhookRefusedError, match="name"):
        read_webhook(kind, headers, body, SECRET)


@KINDS
@pytest.mark.parametrize(
    "document",
    [
        {},
        {"repository": {"full_name": "yard/infra"}},
        {"repository": "yard/infra", "project": "yard/infra", "pull_request": {"number": 1}},
        {**NAMED, **GITLAB, "pull_request": {"number": "7"}, "object_attributes": {"iid": "7"}},
        {**NAMED, **GITLAB, "pull_request": {"number": -1}, "object_attributes": {"iid": -1}},
    ],
)
def test_delivery_that_does_not_say_which_pull_request_is_refused(kind: ForgeKind, document: Any) -> None:
    event = "Merge Request Hook" if kind is ForgeKind.GITLAB else "pull_request"
    with pytest.raises(WebhookRefusedError, match="not understood"):
        read(kind, event, document)


@KINDS
@given(body=st.binary(max_size=200), event=st.text(max_size=20), delivery=st.text(max_size=20))
def test_any_bytes_are_an_event_or_refused(kind: ForgeKind, body: bytes, event: str, delivery: str) -> None:
    headers = make_headers(kind, event, body) | {NAMES[kind][1]: delivery}
    with contextlib.suppress(WebhookRefusedError):
        assert read_webhook(kind, headers, body, SECRET).delivery == delivery.strip()


@KINDS
@given(
    document=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["repository", "pull_request", "number", "ref", "after", "project", "user"])
                | st.text(max_size=5),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ),
    event=st.sampled_from(["push", "pull_request", "issue_comment", "Push Hook", "Note Hook"]),
)
def test_any_document_is_an_event_or_refused(kind: ForgeKind, document: Any, event: str) -> None:
    try:
        found = read(kind, event, document)
    except WebhookRefusedError:
        return
    assert isinstance(document, dict)
    assert found.delivery == "d-1"
