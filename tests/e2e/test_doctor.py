"""`stackyard doctor`: what can be used is said so, and what cannot is a problem with its remedy."""

from __future__ import annotations

import dataclasses
import datetime
import shutil
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import stackyard
from tests.support.engine import real_engine
from tests.support.lab import proxmoxer_client
from tests.support.path import Yard, make_yard

from stackyard import lab
from stackyard.engine.version import Flavour
from stackyard.operator.doctor.installed import look_at_python

pytestmark = pytest.mark.tofu


def rows(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in document["checks"]}


def broken_program(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def yard(tmp_path: Path, home: Path) -> Any:
    with lab.running(nodes=("pve1",)) as running:
        yield make_yard(running, tmp_path / "site")


def node_file(yard: Yard, name: str, endpoint: str) -> None:
    text = (yard.folder / "nodes" / "lab.yaml").read_text()
    (yard.folder / "nodes" / f"{name}.yaml").write_text(text.replace(yard.running.url, endpoint))


def test_a_site_whose_store_and_hosts_answer_can_be_used(yard: Yard) -> None:
    yard = yard.with_env(STACKYARD_TOFU=str(real_engine(Flavour.TOFU).path))
    document = yard.json("doctor")
    found = rows(document)
    assert document["usable"] is True
    assert found["engine"]["seen"].startswith("OpenTofu 1.")
    assert found["lab"]["area"] == "hosts"
    assert "Proxmox VE 9." in found["lab"]["seen"]
    assert "the token works" in found["lab"]["seen"]
    assert "empty" in found["store"]["seen"]
    assert found["site"]["seen"] == str(yard.folder)
    said = yard.run("doctor").stdout
    assert said.splitlines()[-1] == "stackyard can be used here."


def test_every_problem_is_found_at_once_within_the_time_and_no_secret_is_shown(
    yard: Yard, tmp_path: Path
) -> None:
    secret = yard.running.api_token.partition("=")[2]
    api: Any = proxmoxer_client(yard.running)
    user, _, name = yard.running.api_token.partition("=")[0].partition("!")
    api.access.users(user).token(name).delete()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        node_file(yard, "silent", f"https://127.0.0.1:{silent.getsockname()[1]}")
        node_file(yard, "gone", "https://127.0.0.1:9")
        (yard.folder / "envs" / "bad.yaml").write_text("node: nowhere\nvms: 3\n")
        (yard.folder / ".stackyard" / "journal").mkdir(parents=True, exist_ok=True)
        tofu = broken_program(tmp_path / "bin", "tofu", """echo '{"terraform_version": "1.5.0"}'""")
        git = broken_program(tmp_path / "bin", "git", "exit 3")
        began = time.monotonic()
        path = f"{git.parent}:/usr/bin:/bin"
        odd = yard.with_env(STACKYARD_TOFU=str(tofu), STACKYARD_PROVIDER="other", PATH=path)
        ended = odd.run("doctor", "--json", "--timeout", "3", status=1)
        took_s = time.monotonic() - began
    found = rows(ended.document)
    status = {name: row["status"] for name, row in found.items()}
    assert ended.document["usable"] is False
    assert status["engine"] == status["provider"] == status["site"] == "problem"
    assert "stackyard tools install tofu" in found["engine"]["remedy"]
    assert "1 mistake" in found["site"]["seen"] or "mistakes" in found["site"]["seen"]
    assert status["lab"] == status["silent"] == status["gone"] == "problem"
    assert found["lab"]["code"] == "E-PREFLIGHT-TOKEN"
    assert found["gone"]["code"] == "E-PREFLIGHT-API"
    assert status["git"] == status["store"] == "warning"
    assert "earlier version" in found["store"]["seen"]
    # One after the other, they would take twice as long.
    assert took_s < 9
    assert secret not in ended.stdout + ended.stderr
    assert all(row["remedy"] for row in ended.document["checks"] if row["status"] != "ok")


def test_a_store_that_does_not_answer_is_a_problem(yard: Yard) -> None:
    found = rows(
        yard.with_env(STACKYARD_STORE="https://127.0.0.1:9").json("doctor", "--timeout", "2", status=1)
    )
    assert found["store"]["status"] == "problem"


def test_without_a_site_it_says_so_and_what_comes_next(tmp_path: Path, home: Path) -> None:
    ended = stackyard("doctor", "--json", cwd=tmp_path, env={})
    site = rows(ended.document)["site"]
    assert (site["status"], site["seen"]) == ("ok", "none here or in a folder above")
    assert "stackyard connect" in site["remedy"]
    ended = stackyard("doctor", "--site", str(tmp_path / "none"), cwd=tmp_path, env={})
    assert ended.status == 65


@pytest.mark.parametrize(
    ("today", "status", "said"),
    [
        ("2026-01-01", "ok", ""),
        ("2027-08-01", "warning", "gets no security fixes after 2027-10-31"),
        ("2028-01-01", "warning", "has had no security fixes since 2027-10-31"),
    ],
)
def test_an_old_python_is_a_warning_before_its_end(today: str, status: str, said: str) -> None:
    row = look_at_python((3, 11), datetime.date.fromisoformat(today))
    assert row.status == status
    assert said in row.seen
    assert dataclasses.replace(row, name="x").document()["status"] == status


def test_a_store_that_makes_no_sense_is_never_replaced_by_the_default(yard: Yard) -> None:
    path = yard.folder / "site.yaml"
    whole = path.read_text()
    for word in ("ftp://x/y", "17", "postgresql://u:SEKRET@h/db"):
        path.write_text(f"{whole}\nstore: {word}\n")
        assert rows(yard.json("doctor", status=1))["store"]["status"] == "problem", word
        for verb in (("store", "check"), ("store", "show"), ("runs", "list")):
            ended = yard.run(*verb, status=None)
            assert ended.status in (64, 65), (verb, word, ended.stdout)
            assert "SEKRET" not in ended.stdout + ended.stderr


@pytest.mark.parametrize("name", [".stackyard", ".stackyard/state"])
def test_a_file_in_place_of_the_folder_of_the_store_is_a_problem(yard: Yard, name: str) -> None:
    path = yard.folder / name
    shutil.rmtree(path, ignore_errors=True)
    path.write_text("")
    store = rows(yard.json("doctor", status=1))["store"]
    assert store["status"] == "problem"
    assert store["seen"].endswith(f"{path} is not a folder.")
