"""The files for the CI of forges: pinned, with the least permissions, and no text of others in a script."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from tests.support.cli import stackyard
from tests.support.pages import Reader

from stackyard.base.errors import UsageError
from stackyard.clients.forge.model import ForgeKind
from stackyard.gitops.context import OwnEnvironment
from stackyard.gitops.model import Credentials
from stackyard.gitops.workflows import AwsRoles, Runner, WorkflowFile, make_workflows, read_roles

HOSTED = Runner(release="https://example.org/stackyard/1.0", sums="0123456789abcdef" * 4)
OWN = Runner(label="control")
AWS = "arn:aws:iam::123456789012:role/"
ROLES = AwsRoles(plan=f"{AWS}plan", apply=f"{AWS}apply")
TOKEN_NAMES = (
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_URL",
    "STACKYARD_FORGE_ID_TOKEN",
)
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


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        (ForgeKind.GITHUB, "plan-target", '--target "$TARGET"'),
        (ForgeKind.GITEA, "plan-part", '--part "$PART"'),
        (ForgeKind.GITLAB, "plan-part", '--part "$CI_NODE_INDEX/$CI_NODE_TOTAL"'),
    ],
)
def test_jobs_of_a_matrix_plan_and_the_job_behind_them_shows_whatever_became_of_them(
    kind: ForgeKind, name: str, words: str
) -> None:
    document = read(make_workflows(kind, HOSTED)[0])
    jobs = document.get("jobs", document)
    assert words in scripts(jobs[name])[-1]
    last = jobs["plan"]
    assert not {"--target", "--part"} & set(" ".join(scripts(last)).split())
    if kind is ForgeKind.GITLAB:
        assert (jobs[name]["allow_failure"], jobs[name]["parallel"]) == ("true", "4")
        assert document["stages"].index(jobs[name]["stage"]) < document["stages"].index(last["stage"])
        return
    strategy = jobs[name]["strategy"]
    assert strategy["fail-fast"] == "false"
    [axis] = strategy["matrix"]
    assert f"matrix.{axis}" in jobs[name]["concurrency"]["group"]
    assert name in last["needs"]
    assert last["if"].startswith("!cancelled()")
    if kind is ForgeKind.GITEA:
        assert jobs[name]["env"]["PART"].endswith(f"/{len(strategy['matrix'][axis])}")


def test_the_selecting_job_gives_what_the_matrix_reads(tmp_path: Path) -> None:
    jobs = read(make_workflows(ForgeKind.GITHUB, OWN)[0])["jobs"]
    program = tmp_path / "bin" / "stackyard"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$*" >&2; echo \'{"targets": ["stack:a", "env:b"]}\'\n')
    program.chmod(0o755)
    out = tmp_path / "out"
    env = {"PATH": f"{program.parent}:/usr/bin:/bin", "NUMBER": "7", "GITHUB_OUTPUT": str(out)}
    step = next(one for one in jobs["targets"]["steps"] if one.get("id") == "select")
    ended = subprocess.run(["sh", "-c", step["run"]], env=env, check=True, capture_output=True, text=True)
    # A matrix has at most 256 jobs.
    assert ended.stderr == "gitops targets 7 --most 256 --json\n"
    name, _, said = out.read_text().partition("=")
    assert f"outputs.{name} " in jobs["targets"]["outputs"]["selected"]
    assert orjson.loads(said)["targets"] == ["stack:a", "env:b"]
    program.write_text("#!/bin/sh\nexit 75\n")
    assert subprocess.run(["sh", "-c", step["run"]], env=env, check=False).returncode == 75


@pytest.mark.parametrize("runner", [HOSTED, OWN], ids=["hosted", "own"])
def test_jobs_log_in_to_aws_each_with_its_role_and_only_they_may_have_a_token(runner: Runner) -> None:
    for file in make_workflows(ForgeKind.GITHUB, runner, roles=ROLES):
        for name, job in read(file)["jobs"].items():
            used = [step for step in job["steps"] if "configure-aws-credentials@" in step.get("uses", "")]
            if name == "review":
                assert (used, "permissions" in job) == ([], False)
                continue
            [login] = used
            assert re.fullmatch(r"aws-actions/\S+@[0-9a-f]{40}", login["uses"])
            assert job["permissions"]["id-token"] == "write"
            # What a role trusts is the environment: only the apply is in that of applies.
            which = "apply" if name == "apply" else "plan"
            assert (job["environment"], login["with"]["role-to-assume"]) == (
                f"stackyard-{which}",
                AWS + which,
            )
            assert len(scripts(job)) == len(scripts(plain(runner)["jobs"][name])) + (not runner.label)
    assert "id-token" not in str(plain(runner))


def plain(runner: Runner) -> dict[str, Any]:
    return read(make_workflows(ForgeKind.GITHUB, runner)[0])


@pytest.mark.parametrize("runner", [HOSTED, OWN], ids=["hosted", "own"])
def test_jobs_of_gitlab_give_the_token_to_whoever_asks_aws(runner: Runner, tmp_path: Path) -> None:
    document = read(make_workflows(ForgeKind.GITLAB, runner, roles=ROLES)[0])
    for name in ("plan-part", "plan", "apply", "drift"):
        job = document[name]
        assert job["id_tokens"] == {"STACKYARD_FORGE_ID_TOKEN": {"aud": "sts.amazonaws.com"}}
        own = "".join(scripts(job))
        which, other = ("apply", "plan") if name == "apply" else ("plan", "apply")
        assert (AWS + which in own, f'"{AWS}{other}"' in own) == (True, False)
        for script in scripts(job):
            subprocess.run(["sh", "-n"], input=script, text=True, check=True)
    login = next(one for one in document["apply"]["script"] if "AWS_ROLE_ARN" in one)
    steps = [login]
    if not runner.label:
        folder = tmp_path / "credentials"
        folder.mkdir()
        (folder / "apply.env").write_text("A=b\n")
        steps.append(document["apply"]["script"][-2])
    env = {
        "PATH": "/usr/bin:/bin",
        "TMPDIR": str(tmp_path),
        "STACKYARD_FORGE_ID_TOKEN": "a.b.c",
        "STACKYARD_GITOPS_CREDENTIALS": str(tmp_path / "credentials"),
        "CI_JOB_ID": "9",
    }
    show = 'cat "$AWS_WEB_IDENTITY_TOKEN_FILE"; stat -c " %a" "$AWS_WEB_IDENTITY_TOKEN_FILE"'
    said = subprocess.run(
        ["sh", "-c", "\n".join([*steps, show])], env=env, check=True, capture_output=True, text=True
    )
    assert said.stdout == "a.b.c 600\n"
    if not runner.label:
        given = (tmp_path / "credentials" / "apply.env").read_text()
        assert f"AWS_ROLE_ARN={AWS}apply\n" in given
        assert "a.b.c" not in given


def test_runs_of_targets_never_get_what_a_job_asks_its_forge_for_tokens_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (*TOKEN_NAMES, "AWS_ROLE_ARN"):
        monkeypatch.setenv(name, "x")
    for which in (Credentials.PLAN, Credentials.APPLY):
        given = OwnEnvironment().environment("stack:web", which)
        assert ({*TOKEN_NAMES} & set(given), given["AWS_ROLE_ARN"]) == (set(), "x")


@pytest.mark.parametrize(
    "text",
    [
        "aws",
        "apply=" + AWS + "apply",
        f"aws={AWS}plan,aws={AWS}plan",
        f"aws={AWS}plan,other={AWS}plan",
        "aws=arn:aws:iam::123456789012:user/x",
        'aws=arn:aws:iam::123456789012:role/x"',
        f"aws={AWS}plan\n",
    ],
)
def test_roles_that_are_none_and_a_forge_without_tokens_are_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read_roles(text, ForgeKind.GITHUB)
    refused = stackyard(
        *("gitops", "init", "--forge", "gitea", "--runner", "control", "--oidc", f"aws={AWS}plan", "--json"),
        cwd=tmp_path,
    )
    assert (refused.status, list(tmp_path.iterdir())) == (64, [])
    assert "Gitea 1.26 gives jobs no OIDC token" in refused.document["error"]["detail"]


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
