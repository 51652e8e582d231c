"""Specs over HTTPS: who gets which, in which form, and how everything else is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.controller import SITE_TOKEN, Asking, asking, make_site, running
from tests.support.site_store import keys_in

from stackyard.base.errors import InvalidInputError
from stackyard.clients.objects import ABSENT, open_objects
from stackyard.clients.objects.http import TOKEN_VARIABLE, HttpAddress, HttpObjects, StoreToken
from stackyard.controller import RunningController
from stackyard.state import Access, Actor, Right, StateService
from stackyard.state.http.throttle import ThrottleLimits

WEB1, WEB2 = "node-token-of-web1", "node-token-of-web2"


def ask(site: Path, questions: Callable[[Asking, RunningController], Awaitable[Any]], **options: Any) -> Any:
    """Run a controller, and ask it."""

    async def run() -> Any:
        async with running(site, **options) as found, asking(found) as client:
            return await questions(client, found)

    return asyncio.run(run())


def test_health_and_specs_are_for_everybody(tmp_path: Path) -> None:
    async def questions(client: Asking, found: RunningController) -> None:
        del found
        assert (await client("/health")).document == {"status": "ok"}
        assert (await client("/specs")).document == {"specs": ["base", "open", "staged", "web"]}
        head = await client("/specs", method="HEAD")
        assert (head.status, head.body, int(head.headers["Content-Length"]) > 0) == (200, b"", True)

    ask(make_site(tmp_path), questions)


@pytest.mark.parametrize(
    ("identity", "token", "status", "code"),
    [
        ("base", None, 200, ""),
        ("base", "anything", 200, ""),
        ("staged", None, 401, "E300"),
        ("staged", "wrong", 403, "E301"),
        ("staged", WEB1, 403, "E301"),
        ("staged", "", 401, "E300"),
        ("staged", SITE_TOKEN, 200, ""),
        ("web1", None, 401, "E300"),
        ("web1", SITE_TOKEN, 403, "E301"),
        ("web1", WEB2, 403, "E301"),
        ("web1", WEB1, 200, ""),
        ("web2", WEB2, 200, ""),
        ("web", WEB1, 403, "E301"),
        ("nobody", None, 404, "E200"),
        ("lost", None, 404, "E201"),
        ("keyless", None, 404, "E202"),
        ("wrong", None, 422, "E400"),
        ("%20", None, 400, "E101"),
        ("-x", None, 400, "E101"),
        ("", None, 400, "E101"),
    ],
)
def test_a_spec_is_given_to_whom_its_posture_says(
    tmp_path: Path, identity: str, token: str | None, status: int, code: str
) -> None:
    async def questions(client: Asking, found: RunningController) -> None:
        del found
        answer = await client(f"/spec/{identity}", token)
        assert answer.status == status
        if code:
            assert answer.refusal == (status, code)
            assert answer.document.keys() == {"error"}
            assert answer.document["error"].keys() == {"code", "message"}
        else:
            assert answer.document["schema_version"] == 1

    ask(make_site(tmp_path, is_broken=True), questions)


def test_each_guest_of_a_spec_gets_its_own_name_and_the_whole_posture(tmp_path: Path) -> None:
    async def questions(client: Asking, found: RunningController) -> None:
        del found
        one, other = [
            (await client(f"/spec/{name}", f"node-token-of-{name}")).document for name in ("web1", "web2")
        ]
        assert (one["identity"]["hostname"], other["identity"]["hostname"]) == ("web1", "web2")
        posture = one["access"]["_posture"]
        assert posture["ssh"] == {"port": 22, "permit_root_login": "no", "password_authentication": "no"}
        assert posture["fail2ban"] == {"enabled": True}
        assert "nginx" in one["platform"]["packages"]

    ask(make_site(tmp_path), questions)


def test_signed_tokens_open_what_they_name_until_they_are_revoked(tmp_path: Path) -> None:
    async def questions(client: Asking, found: RunningController) -> None:
        mine, issued = found.tokens.issue(node="web1")
        of_another, _ = found.tokens.issue(node="web2")
        expired, _ = found.tokens.issue(node="web1", lasts_s=1e-9)
        of_spec, _ = found.tokens.issue(spec="web")
        of_repo, _ = found.tokens.issue(repo="*")
        shown = (mine, of_another, expired, of_spec, of_repo, mine[:-1], f"{mine}x")
        found_statuses = [(await client("/spec/web1", token)).status for token in shown]
        assert found_statuses == [200, 403, 403, 200, 403, 403, 403]
        found.tokens.revoke(issued.id)
        assert (await client("/spec/web1", mine)).refusal == (403, "E301")

    ask(make_site(tmp_path), questions, run_tokens=True)


def test_tokens_of_one_run_are_kept_nowhere(tmp_path: Path) -> None:
    site = make_site(tmp_path)

    async def questions(client: Asking, found: RunningController) -> str:
        del client
        return found.tokens.issue(node="web1")[0]

    token = ask(site, questions, run_tokens=True)
    assert keys_in(site / ".stackyard", "controller/tokens") == []

    async def again(client: Asking, found: RunningController) -> None:
        del found
        assert (await client("/spec/web1", token)).refusal == (403, "E301")

    ask(site, again, run_tokens=True)


@pytest.mark.parametrize(
    ("form", "begins"), [("json", b"{"), ("yaml", b"schema_version: 1"), ("shell", b"#!/bin/sh")]
)
def test_a_spec_comes_in_the_form_that_is_asked_for(tmp_path: Path, form: str, begins: bytes) -> None:
    async def questions(client: Asking, found: RunningController) -> None:
        del found
        assert (await client(f"/spec/base?format={form}")).body.startswith(begins)
        assert (await client("/spec/base?format=exe")).refusal == (400, "E100")

    ask(make_site(tmp_path), questions)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "LOCK"])
def test_other_methods_are_refused_everywhere(tmp_path: Path, method: str) -> None:
    async def questions(client: Asking, found: RunningController) -> None:
        del found
        for path in (
            "/health",
            "/specs",
            "/spec/base",
            "/metrics",
            "/",
            "/nowhere",
            "/bootstrap.git/info/refs",
        ):
            answer = await client(path, method=method)
            assert answer.refusal == (405, "E102")
            assert answer.headers["Allow"] == "GET, HEAD"

    ask(make_site(tmp_path), questions)


@pytest.mark.parametrize(
    "path", ["/", "/spec/a/b", "/specs/x", "/favicon.ico", "/.git/config", "/bootstrap.git"]
)
def test_what_is_not_there_is_not_found(tmp_path: Path, path: str) -> None:
    async def questions(client: Asking, found: RunningController) -> None:
        del found
        assert (await client(path)).refusal == (404, "E100")

    ask(make_site(tmp_path), questions)


def test_repositories_that_are_not_served_are_not_found(tmp_path: Path) -> None:
    async def questions(client: Asking, found: RunningController) -> None:
        del found
        assert (await client("/bootstrap.git/info/refs")).refusal == (404, "E200")

    ask(make_site(tmp_path), questions)


def test_who_guesses_has_to_wait_and_a_right_token_has_not(tmp_path: Path) -> None:
    async def questions(client: Asking, found: RunningController) -> None:
        del found
        answers = [await client("/spec/web1", f"guess {number}") for number in range(5)]
        assert [answer.status for answer in answers] == [403, 403, 403, 429, 429]
        assert answers[-1].refusal == (429, "E302")
        assert int(answers[-1].headers["Retry-After"]) > 0
        assert answers[-1].headers["Connection"] == "close"
        assert (await client("/spec/web1", WEB1)).status == 200
        assert (await client("/spec/web2", WEB2)).status == 200
        assert (await client("/health")).status == 200

    limits = ThrottleLimits(failures=3, address_failures=100, delay_s=0.01)
    ask(make_site(tmp_path), questions, throttle=limits)


@pytest.mark.parametrize("wrong", ["Negotiate x", "Basic %%%", "Digest", "Bearer"])
def test_every_way_to_show_a_wrong_token_counts(tmp_path: Path, wrong: str) -> None:
    async def questions(client: Asking, found: RunningController) -> None:
        del found
        sent = {"Authorization": wrong}
        statuses = [(await client("/spec/web1", headers=sent)).status for _ in range(4)]
        assert statuses == [401, 401, 401, 429]
        assert [(await client("/spec/web1")).status for _ in range(4)] == [401] * 4

    limits = ThrottleLimits(failures=3, address_failures=100, delay_s=0.01)
    ask(make_site(tmp_path), questions, throttle=limits)


def test_guests_of_one_name_that_want_different_specs_get_none(tmp_path: Path) -> None:
    again = "posture: dev\nnode: pve\nvms:\n  - {name: web1, spec: open, image: debian-12, preset: small}\n"

    async def questions(client: Asking, found: RunningController) -> None:
        del found
        assert (await client("/spec/web1", WEB1)).refusal == (422, "E400")

    ask(make_site(tmp_path, envs__again=again), questions)


def test_a_token_that_the_site_does_not_have_opens_nothing(tmp_path: Path) -> None:
    async def questions(client: Asking, found: RunningController) -> None:
        del found
        for token in ("", "None", "null", "undefined"):
            assert (await client("/spec/staged", token)).status in (401, 403)

    ask(
        make_site(
            tmp_path, secrets="ssh_keys: {}\n", envs__shop=None, v2__specs__web=None, v2__specs__base=None
        ),
        questions,
    )


def test_secrets_that_cannot_be_read_stop_the_start(tmp_path: Path) -> None:
    site = make_site(tmp_path, secrets="auth: [this is no mapping\n")

    async def run() -> None:
        async with running(site):
            raise AssertionError("it started")

    with pytest.raises(InvalidInputError):
        asyncio.run(run())


def test_a_reload_takes_everything_new_and_keeps_connections(tmp_path: Path) -> None:
    site = make_site(tmp_path)

    async def questions(client: Asking, found: RunningController) -> None:
        assert (await client("/spec/staged", SITE_TOKEN)).status == 200
        secrets = site / "secrets.yaml"
        secrets.write_text(secrets.read_text().replace(SITE_TOKEN, "another-token"))
        (site / "v2/specs/added.yaml").write_text("schema_version: 1\naccess: {posture: dev}\n")
        assert (await client("/spec/staged", SITE_TOKEN)).status == 200
        await found.reload()
        assert (await client("/spec/staged", SITE_TOKEN)).status == 403
        assert (await client("/spec/staged", "another-token")).status == 200
        assert (await client("/spec/added")).status == 200
        assert len(client.session.connector._conns) == 1  # type: ignore[union-attr]

    ask(site, questions)


def test_a_reload_that_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    site = make_site(tmp_path)

    async def questions(client: Asking, found: RunningController) -> None:
        (site / "secrets.yaml").write_text("auth: [no\n")
        with pytest.raises(InvalidInputError):
            await found.reload()
        assert (await client("/spec/staged", SITE_TOKEN)).status == 200

    ask(site, questions)


def test_a_changed_signing_key_ends_its_tokens_at_the_reload(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    secrets = site / "secrets.yaml"
    secrets.write_text(f'{secrets.read_text()}  signing_key: "{"ab" * 32}"\n')

    async def questions(client: Asking, found: RunningController) -> None:
        token, _ = found.tokens.issue(node="web1")
        assert (await client("/spec/web1", token)).status == 200
        secrets.write_text(secrets.read_text().replace("ab" * 32, "cd" * 32))
        await found.reload()
        assert (await client("/spec/web1", token)).refusal == (403, "E301")

    ask(site, questions)


def test_the_certificate_is_kept_with_the_site_and_its_key_survives_a_renewal(tmp_path: Path) -> None:
    site = make_site(tmp_path)

    async def identity(client: Asking, found: RunningController) -> tuple[str, str]:
        del client
        return found.fingerprint, found.pin

    first, second = ask(site, identity), ask(site, identity)
    assert first == second
    renewed = ask(site, identity, names=("another.example",))
    assert (renewed[0] != first[0], renewed[1] == first[1]) == (True, True)
    # Another machine that shares the store shows it too, and the names of both stay in it.
    assert ask(site, identity, names=("third.example",))[1] == first[1]
    assert ask(site, identity, names=("another.example",)) == ask(site, identity)
    kept = site / ".stackyard" / "controller" / "certificate"
    assert [path.name for path in kept.iterdir() if path.stat().st_mode & 0o077] == []


def test_the_state_service_answers_below_its_own_path(tmp_path: Path) -> None:
    async def questions(client: Asking, found: RunningController) -> None:
        del found
        assert (await client("/state/health")).document == {"status": "ok"}
        # Not 404: an engine would take that for "no state yet".
        for path in ("/state/states/prod/net", "/state/nowhere", "/state/states/../../x"):
            assert (await client(path)).status == 401

    ask(make_site(tmp_path), questions, state=tmp_path / "states")


def test_the_objects_of_the_states_are_below_the_same_path(tmp_path: Path) -> None:
    states = tmp_path / "states"
    inner = open_objects(states)
    _, token = StateService(inner).principals.add(
        "runner", [Access(rights=(Right.STORE,))], Actor(principal="tests")
    )
    inner.close()

    def use(found: RunningController) -> bytes | None:
        address = HttpAddress.parse(f"{found.url}/state?fingerprint={found.fingerprint}")
        objects = HttpObjects(address, token=StoreToken({TOKEN_VARIABLE: token}))
        objects.put("heads/a", b"1", expect=ABSENT)
        stored = objects.get("heads/a")
        objects.close()
        return None if stored is None else stored.data

    async def questions(client: Asking, found: RunningController) -> None:
        del client
        assert await asyncio.to_thread(use, found) == b"1"

    ask(make_site(tmp_path), questions, state=states)


def test_metrics_count_by_route_and_name_nobody(tmp_path: Path) -> None:
    async def questions(client: Asking, found: RunningController) -> None:
        del found
        await client("/spec/web1", WEB1)
        await client("/spec/web1", "wrong")
        text = (await client("/metrics")).body.decode()
        assert 'stackyard_controller_requests_total{route="spec",status="200"} 1\n' in text
        assert 'stackyard_controller_requests_total{route="spec",status="403"} 1\n' in text
        assert "stackyard_controller_connections 1\n" in text
        assert "web1" not in text

    ask(make_site(tmp_path), questions)
