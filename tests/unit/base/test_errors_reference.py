"""Every code is stable, explained and listed, wherever in the package it is defined."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

import pvelab
import stackyard
from stackyard.base.diagnostics import Kind, Severity
from stackyard.base.errors import ExitStatus, StackyardError

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "errors.md"


def refuse(name: str) -> None:
    raise ImportError(f"{name} cannot be imported")


def modules() -> list[ModuleType]:
    found = [
        module
        for package in (stackyard, pvelab)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.", onerror=refuse)
    ]
    # The entry point runs the program when it is imported; some modules can be imported in guests only.
    skipped = ("__main__", ".machines.guest.site.apt", ".machines.guest.site.apt_pkg")
    names = sorted(module.name for module in found if not module.name.endswith(skipped))
    return [importlib.import_module(name) for name in names]


MODULES = modules()


def error_classes() -> list[type[StackyardError]]:
    known = [StackyardError]
    for error in known:
        known += [below for below in error.__subclasses__() if below not in known]
    ours = [error for error in known if error.__module__.startswith(("stackyard.", "pvelab."))]
    return sorted(ours, key=lambda error: (error.__module__, error.__name__))


def kinds() -> list[Kind]:
    """Return each kind once, however many modules import it."""
    found = {
        id(value): value for module in MODULES for value in vars(module).values() if isinstance(value, Kind)
    }
    return sorted(found.values(), key=lambda kind: kind.code)


ERRORS = error_classes()
KINDS = kinds()
CODES = [*(error.code for error in ERRORS), *(kind.code for kind in KINDS)]


def name_of(error: type[StackyardError]) -> str:
    return error.code


def test_the_walk_finds_the_errors_of_all_packages() -> None:
    assert {"stackyard.base.errors", "stackyard.base.process.command"} <= {
        error.__module__ for error in ERRORS
    }


def test_every_code_belongs_to_one_error_or_finding() -> None:
    assert [code for code, count in Counter(CODES).items() if count > 1] == []


@pytest.mark.parametrize("error", ERRORS, ids=name_of)
def test_an_error_has_a_code_a_summary_and_an_explanation_of_its_own(error: type[StackyardError]) -> None:
    assert re.fullmatch(r"E-[A-Z0-9]+(-[A-Z0-9]+)*", error.code)
    assert {"code", "summary", "__doc__"} <= vars(error).keys()
    assert error.summary
    assert not error.summary.endswith(".")
    assert error.__doc__
    assert error.__doc__.strip().splitlines()[0].endswith((".", ":"))
    assert error.exit_status in ExitStatus
    assert error.__name__.endswith("Error")


def says_what_to_do(remedy: str) -> bool:
    """Tell whether a remedy is whole sentences, or ends in a command to copy on a line of its own."""
    return remedy.endswith(".") or remedy.splitlines()[-1:] == [f"  {remedy.splitlines()[-1].strip()}"]


@pytest.mark.parametrize("error", [error for error in ERRORS if error is not StackyardError], ids=name_of)
def test_an_error_says_what_to_do(error: type[StackyardError]) -> None:
    assert error.default_remedy
    assert says_what_to_do(error.default_remedy)


def test_a_finding_has_a_code_that_shows_its_severity_and_says_what_to_do() -> None:
    for kind in KINDS:
        letter = "W" if kind.severity is Severity.WARNING else "E"
        assert re.fullmatch(rf"{letter}-[A-Z0-9]+(-[A-Z0-9]+)*", kind.code)
        assert kind.summary, kind.code
        assert not kind.summary.endswith("."), kind.code
        assert kind.remedy, kind.code
        assert says_what_to_do(kind.remedy), kind.code


def listed_codes() -> set[str]:
    return set(re.findall(r"`([EW]-[A-Z0-9-]+)`", REFERENCE.read_text()))


@pytest.mark.parametrize("code", CODES)
def test_the_reference_lists_the_code(code: str) -> None:
    assert code in listed_codes()


def test_every_code_that_the_source_spells_out_is_that_of_an_error_or_finding() -> None:
    spelled = {
        node.value
        for package in (stackyard, pvelab)
        for path in Path(package.__path__[0]).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if re.fullmatch(r"[EW]-[A-Z0-9]+(-[A-Z0-9]+)*", node.value)
    }
    assert spelled - set(CODES) == set()


def test_the_reference_lists_no_code_that_is_gone() -> None:
    assert listed_codes() - set(CODES) == set()
