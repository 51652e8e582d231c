"""What a user reads when a node cannot be reached, a state is locked, or the guard refuses."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.engine import real_engine
from tests.support.path import Yard, make_yard
from tests.support.ports import free_port

from stackyard import lab
from stackyard.clients.objects import open_objects
from stackyard.engine.version import Flavour
from stackyard.state import Actor, StateService

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

WEB: dict[str, Any] = {"name": "web", "vmid": 500, "preset": "vm-xsmall", "image": "debian-12"}
WRONG = "AB:" * 31 + "AB"


@pytest.fixture(scope="module")
def running() -> Iterator[lab.Running]:
    with lab.running(ssh_port=0) as found:
        yield found


@pytest.fixture
def yard(running: lab.Running, tmp_path: Path) -> Yard:
    engine = real_engine(Flavour.TOFU)
    made = make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(engine.path))
    made.write_env("a", [WEB])
    return made


def write_node(yard: Yard, **changed: str | None) -> dict[str, int]:
    """Change keys of the node, or take them out; return the line of each key."""
    path = yard.folder / "nodes" / "lab.yaml"
    document = {**yaml.safe_load(path.read_text()), **changed}
    lines = [f"{key}: {value}" for key, value in document.items() if value is not None]
    path.write_text("\n".join(lines) + "\n")
    return {line.partition(":")[0]: number for number, line in enumerate(lines, 1)}


def write_token(yard: Yard, token: str) -> None:
    (yard.folder / "secrets.yaml").write_text(yaml.safe_dump({"api_tokens": {"lab": token}}))


def check(yard: Yard, code: str, line: int, *said: str) -> None:
    """Check that a plan and a preflight name the node's file and line, and say what there is to say."""
    error = yard.json("plan", "a", status=None)["error"]
    assert error["code"] == code
    assert (error["where"]["file"], error["where"]["line"]) == ("nodes/lab.yaml", line)
    for text in said:
        assert text in f"{error['detail']} {error['remedy']}"
    shown = yard.run("plan", "a", status=None).stderr
    assert f"at nodes/lab.yaml:{line}" in shown
    looked = yard.json("preflight", "env:a", status=None)
    places = [finding["where"] for finding in looked["errors"] if finding["where"] is not None]
    assert ("nodes/lab.yaml", line) in [(place["file"], place["line"]) for place in places]


def test_a_wrong_fingerprint_is_shown_beside_the_one_that_was_seen(yard: Yard) -> None:
    lines = write_node(yard, api_fingerprint=WRONG)
    seen = yard.running.fingerprint
    check(yard, "E-PROXMOX-UNTRUSTED", lines["api_fingerprint"], f"api_fingerprint: {seen}")


def test_a_certificate_of_no_authority_is_shown_with_the_key_to_set(yard: Yard) -> None:
    write_node(yard, api_fingerprint=None)
    check(yard, "E-PROXMOX-UNTRUSTED", 1, f"api_fingerprint: {yard.running.fingerprint}", "nodes/lab.yaml")


def test_an_api_that_does_not_answer_is_named_with_its_line(yard: Yard) -> None:
    lines = write_node(yard, api_endpoint=f"https://127.0.0.1:{free_port()}")
    check(yard, "E-PROXMOX-UNREACHABLE", lines["api_endpoint"], "Connection refused", "`api_endpoint`")


def test_a_name_that_is_not_known_is_named_with_its_line(yard: Yard) -> None:
    lines = write_node(yard, api_endpoint="https://pve.invalid:8006")
    check(yard, "E-PROXMOX-UNREACHABLE", lines["api_endpoint"], "pve.invalid:8006")


def test_a_token_that_is_not_accepted_is_named_with_its_line(yard: Yard) -> None:
    lines = write_node(yard, api_token="lab")
    wrong = f"{yard.running.api_token.partition('=')[0]}=00000000-0000-0000-0000-000000000000"
    write_token(yard, wrong)
    check(yard, "E-PROXMOX-LOGIN", lines["api_token"], "`api_tokens.lab`", "401")


def test_a_token_that_has_expired_is_named_with_its_line_and_where_to_look(yard: Yard) -> None:
    world, secret = yard.running.world, "11111111-2222-3333-4444-555555555555"

    def add() -> None:
        user = world.store.get("users", "root@pam")
        assert user is not None
        tokens = {**user["tokens"], "old": {"expire": 1, "privsep": 0}}
        with world.store.transaction():
            world.store.put("users", "root@pam", {**user, "tokens": tokens})
            world.store.put("token_secrets", "root@pam!old", {"value": secret})

    yard.running.on_loop(add)
    lines = write_node(yard, api_token="lab")
    write_token(yard, f"root@pam!old={secret}")
    check(yard, "E-PROXMOX-LOGIN", lines["api_token"], "`api_tokens.lab`", "expires")


def test_no_token_is_named_with_the_line_that_asks_for_it(yard: Yard) -> None:
    lines = write_node(yard, api_token="lab")
    (yard.folder / "secrets.yaml").unlink()
    check(yard, "E-NODE-TOKEN", lines["api_token"], "`api_tokens.lab`")


def test_a_locked_state_names_its_holder_and_the_command_that_unlocks_it(yard: Yard) -> None:
    yard.run("plan", "a")
    lock = {"Operation": "OperationTypeApply", "Who": "ann@desk"}
    with contextlib.closing(open_objects(yard.folder / ".stackyard" / "state")) as objects:
        service = StateService(objects)
        for name in ("env/a/lab", "manifest/n1-basic/lab"):
            service.locks.lock(
                name, json.dumps({**lock, "ID": f"held-{name}"}).encode(), Actor(principal="ann")
            )
    verbs = (
        (("plan", "a", "--lock-wait", "0"), "env/a/lab"),
        (("apply", "a", "--lock-wait", "0"), "env/a/lab"),
        (("destroy", "a", "--yes", "--lock-wait", "0"), "env/a/lab"),
        (("state", "delete", "env/a/lab", "--reason", "test"), "env/a/lab"),
        (
            ("create", "-M", "n1-basic", "-H", "lab", "--skip-preflight", "--lock-wait", "0"),
            "manifest/n1-basic/lab",
        ),
    )
    for verb, name in verbs:
        said = yard.run(*verb, status=75).stderr
        assert "ann@desk" in said, said
        assert f"stackyard state unlock held-{name} --reason TEXT" in said, said
        assert "-lock=false" not in said
    yard.run("state", "unlock", "held-env/a/lab", "--reason", "test")
    yard.run("plan", "a")


def test_a_refusal_of_the_guard_carries_its_reasons_as_json_too(yard: Yard) -> None:
    taken = {"name": "edge", "type": "vm", "preset": "vm-xsmall", "image": "debian-12", "vmid": 510}
    yard.write_env("a", [{**WEB, "name": "taken", "vmid": 510}])
    yard.run("apply", "a", "--no-verify")
    text = json.dumps({"schema_version": 2, "name": "m", "nodes": [taken]})
    for verb in ("create", "test"):
        said = yard.run(verb, "--manifest-json", text, "-H", "lab", "--json-output", status=1).document
        reasons = said["diagnosis"]["diagnostics"]
        assert [reason["code"] for reason in reasons] == ["E-GUARD-MANAGED-ELSEWHERE"], reasons
        assert reasons[0]["detail"] in said["error"]
