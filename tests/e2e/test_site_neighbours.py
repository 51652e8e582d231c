"""Targets beside files that are wrong or empty, as a user meets them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import real_engine
from tests.support.path import Yard, make_yard

from stackyard import lab
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

WEB: dict[str, Any] = {"name": "web", "vmid": 500, "preset": "vm-xsmall", "image": "debian-12"}
BROKEN = "node: lab\nvms:\n  - {name: b, preset: gone}\n"


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    engine = real_engine(Flavour.TOFU)
    with lab.running(ssh_port=0) as running:
        made = make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(engine.path))
        made.write_env("a", [WEB])
        yield made


def test_a_broken_env_stops_its_own_verbs_and_is_a_line_for_all_others(yard: Yard) -> None:
    (yard.folder / "envs" / "b.yaml").write_text(BROKEN)
    line = "warning: There is no preset 'gone'. Not used here. (envs/b.yaml:3)"
    verbs = (
        ("plan", "env:a"),
        ("drift", "env:a"),
        ("explain", "a"),
        ("preflight", "env:a"),
        ("preflight",),
        ("create", "-M", "n1-basic", "-H", "lab", "--dry-run"),
        ("spec", "show", "base"),
    )
    for verb in verbs:
        ended = yard.run(*verb)
        assert [said.strip() for said in ended.stderr.splitlines()].count(line) == 1, (verb, ended.stderr)
    said = [event for event in yard.run("plan", "a", "--events").events if event["type"] == "diagnostic"]
    assert [(event["severity"], event["code"], event["file"]) for event in said] == [
        ("warning", "E-SITE-REFERENCE", "envs/b.yaml")
    ]
    refused = yard.json("plan", "env:b", status=65)["error"]
    assert [found["where"]["file"] for found in refused["diagnostics"]] == ["envs/b.yaml"]
    assert "envs/b.yaml:3" in yard.run("site", "validate", status=65).stderr


def test_an_env_without_guests_is_nothing_to_do_and_never_empties_a_state(yard: Yard) -> None:
    (yard.folder / "envs" / "later.yaml").write_text("node: lab\nposture: local\n")
    assert "W-SITE-ENV-EMPTY" in yard.run("site", "validate").stdout
    assert yard.json("plan", "env:later", "--detailed-exitcode")["has_changes"] is False
    for verb in (("apply", "later"), ("drift", "later"), ("destroy", "later", "--yes")):
        yard.run(*verb)

    yard.run("apply", "a", "--no-verify")
    yard.write_env("a", [])
    for word in ("plan", "apply", "drift"):
        error = yard.json(word, "a", status=65)["error"]
        assert error["code"] == "E-INPUT-EMPTY"
        assert "stackyard destroy env:a" in error["remedy"]
    assert list(yard.guests()) == [500]
    yard.run("destroy", "a", "--yes", "--allow-destroy", "web")
    assert yard.json("plan", "a")["has_changes"] is False
