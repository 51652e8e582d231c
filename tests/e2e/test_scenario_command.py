"""`stackyard scenario` and the spelling of old, as a user types them."""

from __future__ import annotations

import shutil
from pathlib import Path

import orjson
import pytest
from tests.support.cli import stackyard
from tests.support.site import SEED, TOKEN, write_site

from stackyard.scenario.catalogue import SCENARIOS
from stackyard.scenario.model import LazyAction
from stackyard.sources.site.load import Site

SEED_NAMES = {
    "bootstrap-install",
    "packer-build",
    "packer-build-fetch",
    "packer-build-publish",
    "packer-sync",
    "packer-sync-build-fetch",
    "pve-setup",
    "spec-vm-push-roundtrip",
    "user-setup",
}


def test_every_scenario_of_the_seed_is_listed_in_both_spellings(tmp_path: Path) -> None:
    new = stackyard("scenario", "list", "--json", cwd=tmp_path)
    old = stackyard("--list-scenarios", "--json", cwd=tmp_path)
    assert (new.status, old.status) == (0, 0)
    assert new.document == old.document
    listed = {one["name"]: one for one in new.document["scenarios"]}
    assert set(listed) == {one.name for one in SCENARIOS}
    assert set(listed) > SEED_NAMES
    assert listed["pve-setup"]["expected_runtime_seconds"] == 180
    assert "pve-setup" in stackyard("--list-scenarios", cwd=tmp_path).stdout


def test_phases_are_listed_without_a_site_or_a_host(tmp_path: Path) -> None:
    old = stackyard("--scenario", "pve-setup", "--list-phases", "--json", cwd=tmp_path)
    assert [one["name"] for one in old.document["phases"]] == [
        "ensure_pve",
        "setup_pve",
        "create_api_token",
        "generate_node_config",
    ]
    assert stackyard("scenario", "phases", "pve-setup", "--json", cwd=tmp_path).document == old.document
    assert stackyard("--list-phases", cwd=tmp_path).status == 64


@pytest.mark.parametrize("name", [scenario.name for scenario in SCENARIOS])
def test_names_follow_the_conventions(name: str) -> None:
    scenario = next(one for one in SCENARIOS if one.name == name)
    assert all("_" in phase.name and phase.name.islower() for phase in scenario.phases)
    for phase in scenario.phases:
        assert isinstance(phase.action, LazyAction)
        assert phase.action.name[0].isupper()
        assert type(phase.action.load()).__name__ == phase.action.name
    assert scenario.summary.endswith(".")


@pytest.mark.parametrize(
    ("old", "use"),
    [
        ("vm-constructor", "stackyard create -M n1-basic -H <host>"),
        ("vm-roundtrip", "stackyard test -M n1-basic -H <host>"),
        ("nested-pve-destructor", "stackyard destroy -M n2-quick -H <host>"),
        ("recursive-pve-roundtrip", "stackyard test -M <manifest> -H <host>"),
    ],
)
@pytest.mark.parametrize("spelling", ["--scenario {}", "--scenario={}", "-S {}", "scenario run {}"])
def test_a_retired_scenario_says_what_stands_for_it(
    old: str, use: str, spelling: str, tmp_path: Path
) -> None:
    ended = stackyard(*spelling.format(old).split(), "-H", "father", cwd=tmp_path)
    assert ended.status == 1
    assert "retired in v0.47" in ended.stderr
    assert f"Use: {use}" in ended.stderr


def test_options_of_old_are_accepted_with_a_hint_or_say_what_stands_for_them(tmp_path: Path) -> None:
    write_site(tmp_path)
    ended = stackyard(
        "--scenario",
        "bootstrap-install",
        "--vm-ip",
        "10.0.0.1",
        "--homestak-user",
        "ops",
        "--dry-run",
        cwd=tmp_path,
    )
    assert ended.status == 0
    assert "--vm-ip is called --remote now" in ended.stderr
    assert "--homestak-user is called --user now" in ended.stderr
    assert "root@10.0.0.1:22" in ended.stdout
    ended = stackyard("--scenario", "pve-setup", "--env", "dev", cwd=tmp_path)
    assert ended.status == 1
    assert "Use: stackyard apply env:NAME" in ended.stderr


def test_a_dry_run_shows_the_phases_and_touches_nothing(tmp_path: Path) -> None:
    write_site(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    ended = stackyard(
        "scenario",
        "run",
        "pve-setup",
        "-H",
        "father",
        "--skip",
        "setup_pve",
        "--dry-run",
        "--json",
        cwd=tmp_path,
    )
    assert ended.status == 0
    assert ended.document["dry_run"]
    assert ended.document["host"] == "root@10.0.12.61:22"
    assert ended.document["timeout_seconds"] == 1800
    assert [one["status"] for one in ended.document["phases"]] == [
        "would run",
        "skipped",
        "would run",
        "would run",
    ]
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("line", "status", "word"),
    [
        ("scenario run nonsense", 64, "E-SCENARIO-UNKNOWN"),
        ("scenario run pve-stup", 64, "Did you mean `pve-setup`"),
        ("scenario run pve-setup", 64, "nothing says on which"),
        ("scenario run pve-setup -H nobody", 65, "E-SITE-HOST"),
        ("scenario run pve-setup --local --remote 10.0.0.1", 64, "do not go together"),
        ("scenario run pve-setup -H father --skip nonsense", 64, "E-SCENARIO-PHASE-UNKNOWN"),
        ("scenario run pve-setup -H father --timeout 0", 64, "timeout"),
        ("scenario run spec-vm-push-roundtrip -H father --vm-id test", 64, "--vm-id test=99990"),
        ("scenario run user-setup --remote 127.0.0.1:1", 69, "E-SSH-UNREACHABLE"),
    ],
)
def test_what_is_wrong_is_said_with_its_status(line: str, status: int, word: str, tmp_path: Path) -> None:
    write_site(tmp_path)
    ended = stackyard(*line.split(), cwd=tmp_path)
    assert ended.status == status, ended
    assert word in ended.stderr + ended.stdout


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_context_file_that_is_wrong_stops_before_anything_is_done(text: str, tmp_path: Path) -> None:
    write_site(tmp_path)
    (tmp_path / "context.json").write_text(text)
    ended = stackyard(
        "--scenario", "user-setup", "--remote", "127.0.0.1:1", "-C", "context.json", cwd=tmp_path
    )
    assert ended.status == 65
    assert "E-SCENARIO-CONTEXT" in ended.stderr


def test_the_file_of_this_machine_is_written_with_the_context_and_a_report(tmp_path: Path) -> None:
    if shutil.which("ip") is None:
        pytest.skip("ip is not installed")
    write_site(tmp_path)
    (tmp_path / "context.json").write_text('{"kept": 1}')
    ended = stackyard(
        "--scenario",
        "host-config",
        "--local",
        "-H",
        "here",
        "-C",
        "context.json",
        "--json-output",
        cwd=tmp_path,
    )
    assert ended.status == 0, ended
    assert set(ended.document) >= {"scenario", "success", "duration_seconds", "phases", "context"}
    assert ended.document["context"] == {
        "kept": 1,
        "host_name": "here",
        "host_file": str(tmp_path / "hosts/here.yaml"),
    }
    assert orjson.loads((tmp_path / "context.json").read_bytes()) == ended.document["context"]
    assert Site.load(tmp_path).hosts["here"].model.hardware.cpu_cores
    assert sorted(Path(path).suffix for path in ended.document["reports"]) == [".json", ".md", ".xml"]


def test_an_error_is_one_text_as_in_the_seed_or_an_object_as_everywhere(tmp_path: Path) -> None:
    write_site(tmp_path)
    line = ("--scenario", "user-setup", "--remote", "127.0.0.1:1", "--report-dir", "out")
    plain = stackyard(*line, "--json-output", cwd=tmp_path)
    assert plain.status == 69
    assert plain.document["success"] is False
    assert plain.document["error"].startswith("Cannot log in to root@127.0.0.1:1")
    assert plain.document["phases"][0]["status"] == "failed"
    assert stackyard(*line, "--json", cwd=tmp_path).document["error"]["code"] == "E-SSH-UNREACHABLE"
    assert list((tmp_path / "out").glob("*.failed.md"))


def test_a_node_whose_token_is_missing_is_no_hindrance_and_a_broken_file_of_it_is(tmp_path: Path) -> None:
    write_site(tmp_path, secrets=SEED["secrets.yaml"].replace(f"  father: {TOKEN}\n", ""))
    line = ("scenario", "run", "pve-setup", "-H", "father", "--dry-run")
    assert stackyard(*line, cwd=tmp_path).status == 0
    # Another node's file is named, and stops nothing here.
    (tmp_path / "nodes" / "pve.yaml").write_text("nonsense: 1\n")
    ended = stackyard(*line, cwd=tmp_path)
    assert (ended.status, "nodes/pve.yaml:1" in ended.stderr) == (0, True)
    (tmp_path / "nodes" / "father.yaml").write_text("nonsense: 1\n")
    assert stackyard(*line, cwd=tmp_path).status == 65
