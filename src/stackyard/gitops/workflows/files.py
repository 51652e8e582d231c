"""Which files each forge needs, and what is put into them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from stackyard.base.errors import UsageError
from stackyard.clients.forge.model import ForgeKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.gitops.workflows.oidc import AwsRoles

__all__ = ["Runner", "WorkflowFile", "make_workflows"]

# Nothing of these has a meaning in YAML, in a shell or in an expression.
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}")
_RELEASE = re.compile(r"https://[A-Za-z0-9][A-Za-z0-9./_~%:-]{0,300}")
_SUMS = re.compile(r"[0-9a-f]{64}")
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,200}")
_FILES: Mapping[ForgeKind, Mapping[str, str]] = {
    ForgeKind.GITHUB: {
        "github.yml": ".github/workflows/stackyard.yml",
        "github-review.yml": ".github/workflows/stackyard-review.yml",
    },
    ForgeKind.GITEA: {"gitea.yml": ".gitea/workflows/stackyard.yml"},
    ForgeKind.GITLAB: {"gitlab.yml": ".gitlab-ci.yml"},
}
_FRAME = re.compile(r"^(?P<indent> *)#\[(?P<name>[a-z]+)\]\n", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Where the jobs run.

    Attributes:
        label: The label (GitLab: the tag) of a runner of your own, which has stackyard; empty for those of
            the forge, which install a release.
        release: Where the release is.
        sums: The SHA-256 that its SHA256SUMS must have: it pins all of it.
    """

    label: str = ""
    release: str = ""
    sums: str = ""

    def __post_init__(self) -> None:
        if self.label:
            if not _LABEL.fullmatch(self.label):
                raise UsageError(f"{self.label!r} is not the label of a runner.")
        elif not self.release or not self.sums:
            raise UsageError(
                "Where do the jobs run?",
                remedy="Give --runner LABEL for a machine of yours that has stackyard, or --release URL and "
                "--sums SHA256 to install a release on the runners of the forge.",
            )
        elif not _RELEASE.fullmatch(self.release) or not _SUMS.fullmatch(self.sums):
            raise UsageError(
                "--release is an https:// address, and --sums is a SHA-256: 64 hexadecimal digits."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowFile:
    """A file for the CI of a forge.

    Attributes:
        path: Where it goes, from the top of the repository.
        text: What is in it.
    """

    path: str
    text: str


def make_workflows(
    kind: ForgeKind, runner: Runner, *, branch: str = "main", roles: AwsRoles | None = None
) -> tuple[WorkflowFile, ...]:
    """Return the files for a forge.

    Args:
        kind: The forge.
        runner: Where the jobs run.
        branch: The base branch.
        roles: The roles of AWS that jobs take with a token of the forge; None for no login there.

    Raises:
        UsageError: The branch cannot be in such a file.
    """
    if not _BRANCH.fullmatch(branch):
        raise UsageError(f"{branch!r} is not the name of a branch that such a file can have.")
    steps = {**_list_steps(kind, runner), **_list_logins(kind, runner, roles)}
    values = {
        "RUNNER": _runs_on(kind, runner),
        "RELEASE": runner.release.rstrip("/"),
        "SUMS": runner.sums,
        "BRANCH": branch,
        "LABEL": runner.label,
    }
    return tuple(
        WorkflowFile(path=path, text=_fill(_read(name), steps, values)) for name, path in _FILES[kind].items()
    )


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _family(kind: ForgeKind) -> str:
    return "gitlab" if kind is ForgeKind.GITLAB else "actions"


def _list_steps(kind: ForgeKind, runner: Runner) -> dict[str, str]:
    """Return by name the steps that every such file has there."""
    names = () if runner.label else ("install", "credentials", "secrets")
    steps = {name: _read(f"{name}-{_family(kind)}.txt") for name in names}
    if kind is ForgeKind.GITLAB:
        steps["place"] = _read("own-gitlab.txt" if runner.label else "hosted-gitlab.txt")
    return steps


def _list_logins(kind: ForgeKind, runner: Runner, roles: AwsRoles | None) -> dict[str, str]:
    """Return by name the steps that log in to AWS."""
    if roles is None:
        return {}
    family = _family(kind)
    login = _read(f"oidc-{family}.txt")
    steps = {
        "idtoken": _read(f"idtoken-{family}.txt"),
        "oidc": login.replace("@ROLE@", roles.plan),
        "oidcapply": login.replace("@ROLE@", roles.apply),
    }
    if kind is ForgeKind.GITHUB:
        steps["environment"] = _read("environment-actions.txt")
    if not runner.label:
        steps["oidcgive"] = _read(f"oidcgive-{family}.txt")
    return steps


def _fill(template: str, steps: Mapping[str, str], values: Mapping[str, str]) -> str:
    """Return a template with its steps and names: `#[install]` is a line that steps take the place of."""

    def place(found: re.Match[str]) -> str:
        lines = steps.get(found["name"], "").splitlines()
        return "".join(f"{found['indent']}{line}\n" if line else "\n" for line in lines)

    text = _FRAME.sub(place, template)
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def _runs_on(kind: ForgeKind, runner: Runner) -> str:
    if runner.label:
        # Any runner of GitHub may have a label; only those of one's own have both.
        return f'[self-hosted, "{runner.label}"]' if kind is ForgeKind.GITHUB else f'"{runner.label}"'
    return "ubuntu-24.04" if kind is ForgeKind.GITHUB else "ubuntu-latest"
