"""The files for the CI of forges: pinned, with the least permissions, and no text of others in a script."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.cli import stackyard
from tests.support.pages import Reader

from stackyard.base.errors import UsageError
from stackyard.clients.forge.model import ForgeKind
from stackyard.gitops.workflows import Runner, WorkflowFile, make_workflows

HOSTED = Runner(release="https://example.org/stackyard/1.0", sums="0123456789abcdef" * 4)
OWN = Runner(label="control")
PAGE = "docs/howto/pull-requests-ci.md"
ACTIONS = (ForgeKind.GITHUB, ForgeKind.GITEA)


def read(file: WorkflowFile) -> dict[str, Any]:
    # As text: YAML takes the key `on` for a truth value.
    document = yaml.load(file.text, yaml.BaseLoader)
    assert isinstance(document, dict)
    return document


def scripts(document: Any) -> list[str]:
    """Return every text that a shell runs."""
    if isinstance(document, list):
        return [line for one in document for line in scripts(one)]
    if not isinstance(document, dict):
        return []
    found = [str(document["run"])] if "run" in document else []
    found += [str(one) for one in document.get("script", ())]
    return found + [line for value in document.values() for line in scripts(value)]


@pytest.mark.parametrize("kind", ForgeKind)
@pytest.mark.parametrize("runner", [HOSTED, OWN], ids=["hosted", "own"])
def test_each_forge_gets_files_that_plan_apply_and_look_for_drift(kind: ForgeKind, runner: Runner) -> None:
    first, *_ = make_workflows(kind, runner, branch="trunk")
    lines = "\n".join(scripts(read(first)))
    for verb in ("plan", "apply", "drift"):
        assert f"stackyard gitops {verb}" in lines
    assert "trunk" in first.text
    assert not re.search(r"@[A-Z]+@|#\[", first.text)
    assert ("install.sh" in lines) is not bool(runner.label)
    assert (HOSTED.sums in first.text) is not bool(runner.label)
    for script in scripts(read(first)):
        subprocess.run(["sh", "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize("kind", ForgeKind)
def test_nothing_that_somebody_can_write_is_in_a_script(kind: ForgeKind) -> None:
    for file in make_workflows(kind, HOSTED):
        assert not [line for line in scripts(read(file)) if "${{" in line]


@pytest.mark.parametrize("kind", ACTIONS)
def test_actions_are_pinned_and_permissions_are_the_least(kind: ForgeKind) -> None:
    for file in make_workflows(kind, HOSTED):
        document = read(file)
        assert document["permissions"] == {}
        taken = [step for job in document["jobs"].values() for step in job["steps"] if "uses" in step]
        # A comment runs the default branch, and a review whatever branch it is of.
        assert all(step["with"] == {"persist-credentials": "false", "ref": "main"} for step in taken)
        used = [step["uses"] for job in document["jobs"].values() for step in job["steps"] if "uses" in step]
        assert all(re.fullmatch(r"\S+@[0-9a-f]{40}", one) for one in used)
        for job in document["jobs"].values():
            rights = job.get("permissions", {})
            assert rights.get("contents", "read") == "read"
            assert "id-token" not in rights


@pytest.mark.parametrize("kind", ForgeKind)
def test_only_the_apply_gets_what_may_change_things(kind: ForgeKind) -> None:
    document = read(make_workflows(kind, HOSTED)[0])
    jobs = document.get("jobs", document)
    assert ["STACKYARD_APPLY_ENV" in str(jobs[name]) for name in ("plan", "apply", "drift")] == [
        *(False, True),
        False,
    ]


@pytest.mark.parametrize("kind", ACTIONS)
def test_a_pull_request_cannot_change_what_runs(kind: ForgeKind) -> None:
    for file in make_workflows(kind, OWN):
        document = read(file)
        assert "pull_request" not in document["on"]
        if "pull_request_review" in document["on"]:
            assert "secrets" not in file.text
            assert document["permissions"] == {}


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"label": "a b"},
        {"label": "x]\n  evil: true"},
        {"release": "https://example.org/r"},
        {"release": "http://example.org/r", "sums": "0" * 64},
        {"release": 'https://example.org/"; id', "sums": "0" * 64},
        {"release": "https://example.org/r", "sums": "latest"},
    ],
)
def test_what_would_mean_something_in_such_a_file_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        Runner(**given)
    with pytest.raises(UsageError):
        make_workflows(ForgeKind.GITHUB, OWN, branch="main\n")


def test_the_verb_writes_once_and_never_over_what_is_there(tmp_path: Path) -> None:
    words = ("gitops", "init", "--forge", "github", "--runner", "control", "--json")
    assert len(stackyard(*words, cwd=tmp_path).document["written"]) == 2
    assert len(stackyard(*words, cwd=tmp_path).document["unchanged"]) == 2
    path = tmp_path / ".github" / "workflows" / "stackyard.yml"
    path.write_text("mine")
    refused = stackyard(*words, cwd=tmp_path)
    assert (refused.status, path.read_text()) == (64, "mine")
    assert stackyard(*words, "--force", cwd=tmp_path).document["written"] == [
        ".github/workflows/stackyard.yml"
    ]


def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    reader = Reader(folder=tmp_path, programs=tmp_path / "bin")
    printed = "".join(printed for block, printed in reader.follow(PAGE) if block.not_run is None)
    assert "Wrote .github/workflows/stackyard.yml" in printed
