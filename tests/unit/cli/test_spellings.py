"""The spelling of old becomes the command that is meant, and every other command line stays as it is."""

from __future__ import annotations

import pytest

from stackyard.base.errors import UsageError
from stackyard.cli.spellings import refuse_other_names, translate_legacy_arguments


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("--scenario pve-setup --local", "scenario run pve-setup --local"),
        ("--scenario=pve-setup --local", "scenario run pve-setup --local"),
        ("-S pve-setup -H father", "scenario run pve-setup -H father"),
        ("-Spve-setup", "scenario run pve-setup"),
        ("--json --scenario x --skip a", "scenario run x --json --skip a"),
        ("-H father --scenario x", "scenario run x -H father"),
        ("--list-scenarios --json", "scenario list --json"),
        ("--scenario x --list-phases", "scenario phases x"),
        ("--list-phases --scenario x", "scenario phases x"),
        ("--list-phases", "scenario phases"),
        ("--preflight --local", "preflight --local"),
        ("--preflight --host mother", "preflight --host mother"),
        ("scenario pve-setup --local", "scenario run pve-setup --local"),
    ],
)
def test_the_spelling_of_old_is_made_into_a_command(old: str, new: str) -> None:
    assert translate_legacy_arguments(old.split()) == new.split()


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--help",
        "--version --json",
        "scenario",
        "scenario list",
        "scenario run pve-setup --scenario x",
        "scenario --help",
        "lab ssh web1 -- run --scenario x",
        "plan dev --preflight",
        "--json lab status",
        "--events -- --scenario x",
    ],
)
def test_other_command_lines_stay_as_they_are(line: str) -> None:
    assert translate_legacy_arguments(line.split()) == line.split()


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("manifest apply -M n2-push -H father", "stackyard create -M NAME -H HOST"),
        ("manifest test -M n2-push -H father", "stackyard test -M NAME -H HOST"),
        ("server start --port 44443", "stackyard serve start"),
        ("server", "stackyard serve"),
        ("create -M n1 -H father --serve-repos", "stackyard serve --repos DIR"),
        ("--serve-repos --scenario pve-setup", "stackyard serve --repos DIR"),
    ],
)
def test_words_of_homestak_are_refused_with_the_command_that_is_meant(line: str, meant: str) -> None:
    with pytest.raises(UsageError) as raised:
        refuse_other_names(line.split())
    assert meant in raised.value.remedy


@pytest.mark.parametrize(
    "line", ["manifest status apply", "lab ssh web -- cat --serve-repos", "scenario list"]
)
def test_the_same_words_elsewhere_are_not(line: str) -> None:
    refuse_other_names(line.split())
