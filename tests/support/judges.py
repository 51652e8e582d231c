"""Programs of others that judge what we make: where each is found, and how many tests each has judged.

A test names its judge with the mark `judges("NAME")`; the marks `bpg` and `terraform` name theirs.
`find_judge` gives the program: the one that STACKYARD_TEST_NAME names, else the managed copy, else the one on
PATH. Without any, the test is skipped by name. `make judges` runs the tests with a judge and counts them.

A further judge is a row of `JUDGES`, and a word in the Makefile if `stackyard tools install` installs it.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support import octokit
from tests.support.octokit import Package

from stackyard.engine.tools import managed
from stackyard.engine.tools.table import INSTALLABLE

__all__ = ["JUDGES", "MARK", "Judge", "find_judge", "mark_tests", "note_programs", "show_counts"]

MARK = "judges"
_PROPERTY = "judge"
_OUTCOMES = ("passed", "failed", "error", "skipped")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """A program that is not part of the project.

    Attributes:
        name: What marks and tests call it.
        program: The name of its file, where that is another.
        package: A package of npm with a description that judges, instead of a program.
    """

    name: str
    program: str = ""
    package: Package | None = None

    @property
    def variable(self) -> str:
        """The variable with the path of the program."""
        return f"STACKYARD_TEST_{self.name.upper().replace('-', '_')}"

    @property
    def advice(self) -> str:
        """How to get it."""
        install = f", or run `stackyard tools install {self.name}`" if self.name in INSTALLABLE else ""
        return f"name one in {self.variable}, put {self.program or self.name} on PATH{install}"

    def search(self) -> str | None:
        """Return the program that is installed."""
        if self.package is not None:
            return str(self.package.path) if self.package.path.is_file() else None
        return next(map(str, managed.copies(self.name)), None) or shutil.which(self.program or self.name)


JUDGES = {
    judge.name: judge
    for judge in (
        Judge(name="opa"),
        Judge(name="talosctl"),
        Judge(name="sops"),
        Judge(name="task"),
        Judge(name="terraform"),
        Judge(name="bpg", program="terraform-provider-proxmox"),
        Judge(name="ansible-vault"),
        Judge(name="kube-apiserver"),
        Judge(name="etcd"),
        Judge(name="kubectl"),
        Judge(name="gitea"),
        # Where npm is on PATH, the tests themselves download these.
        Judge(name=octokit.REST.judge, package=octokit.REST),
        Judge(name=octokit.WEBHOOKS.judge, package=octokit.WEBHOOKS),
    )
}


def note_programs() -> None:
    """Name each program that is installed in its variable, before HOME becomes that of a test."""
    for judge in JUDGES.values():
        if not os.environ.get(judge.variable) and (found := judge.search()):
            os.environ[judge.variable] = found


def find_judge(name: str) -> Path:
    """Return a program that judges, or skip the test by name; one that a variable names must be there."""
    judge = JUDGES[name]
    named = os.environ.get(judge.variable)
    if not named:
        pytest.skip(f"no {name} to test with: {judge.advice}")
    path = Path(named).absolute()
    assert path.is_file(), f"{judge.variable} is {named}, which is not a file"
    return path


def mark_tests(items: Iterable[pytest.Item]) -> None:
    """Mark the tests that drive a judge, and let the report of each name it."""
    for item in items:
        names = set(_list_names(item))
        if names:
            item.add_marker(MARK)
        item.user_properties += [(_PROPERTY, name) for name in sorted(names)]


def _list_names(item: pytest.Item) -> Iterator[str]:
    for mark in item.iter_markers():
        if mark.name == MARK:
            for name in mark.args:
                yield JUDGES[name].name
        elif mark.name in JUDGES:
            yield mark.name


def show_counts(reporter: pytest.TerminalReporter) -> None:
    """Show by name the tests that no one could judge, and how many each judge has judged."""
    reporter.section("judges", sep="-")
    skipped: dict[str, list[str]] = defaultdict(list)
    counts = {name: Counter[str]() for name in JUDGES}
    for outcome in _OUTCOMES:
        for report in reporter.getreports(outcome):
            if outcome == "skipped":
                skipped[_read_reason(report)].append(report.nodeid)
            for key, name in report.user_properties:
                if key == _PROPERTY:
                    counts[str(name)][outcome] += 1
    for reason, tests in sorted(skipped.items()):
        reporter.line(f"{len(tests)} skipped: {reason}")
        for test in sorted(tests):
            reporter.line(f"  {test}")
    for name, count in counts.items():
        ran = count.total() - count["skipped"]
        facts = f"{ran} ran, {count['passed']} passed, {count['skipped']} skipped"
        reporter.line(f"{name}: {facts} ({os.environ.get(JUDGES[name].variable) or 'not found'})")


def _read_reason(report: pytest.TestReport) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    return reason.removeprefix("Skipped: ")
