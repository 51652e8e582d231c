"""The page about stacks is complete: every key of the models, every status, every argument."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from stackyard.path.stacks.arguments import RefusedArgumentError, read_arguments
from stackyard.path.stacks.environment import engine_environment
from stackyard.path.stacks.many import StackStatus
from stackyard.sources.site.entities.stacks import PolicyException, RepositoryFile, StackDependency, StackFile
from stackyard.sources.stacks.selection import ReasonKind

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "stacks.md").read_text()


def sections() -> dict[str, str]:
    """Return what the page says below each heading."""
    parts = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def first_cells(text: str, header: str) -> list[str]:
    """Return the first cells of the table with a header, as they are in backquotes."""
    lines = text.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith(f"| {header} |"))
    rows = []
    for line in lines[begin + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(line.split("|")[1])
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row)]


@pytest.mark.parametrize(
    ("section", "part", "model"),
    [
        ("stack.yaml", 0, StackFile),
        ("stack.yaml", 1, StackDependency),
        ("stackyard.yaml", 0, RepositoryFile),
        ("stackyard.yaml", 1, PolicyException),
    ],
)
def test_a_table_has_exactly_the_keys_of_its_model(section: str, part: int, model: type[BaseModel]) -> None:
    tables = sections()[section].split("\nAn entry of `")
    assert first_cells(tables[part], "key") == list(model.model_fields)


def test_every_status_and_every_reason_of_a_selection_is_on_the_page() -> None:
    assert first_cells(sections()["Commands on several stacks"], "status") == [*StackStatus]
    assert first_cells(sections()["What counts as a change"], "reason") == [*ReasonKind]


def test_the_engine_is_not_given_what_the_page_says() -> None:
    named = first_cells(sections()["The environment of the engine"], "variable")
    assert len(named) >= 10
    assert engine_environment({name.replace("…", "X"): "1" for name in named}) == {}
    assert engine_environment({"AWS_PROFILE": "1", "TF_VAR_x": "2"}) == {"AWS_PROFILE": "1", "TF_VAR_x": "2"}


def test_arguments_are_passed_on_or_refused_as_the_page_says() -> None:
    rows = [line.split("|") for line in sections()["Arguments behind `--`"].splitlines() if "|" in line][2:]
    passed = [word for row in rows for word in re.findall(r"`(-[a-z-]+)`", row[1])]
    refused = [word for row in rows for word in re.findall(r"`(-[a-z][a-z-]+)`", row[2])]
    assert len(passed) >= 10
    assert len(refused) >= 10
    for word in passed:
        assert read_arguments([f"{word}=x"]).words == (f"{word}=x",)
    for word in refused:
        with pytest.raises(RefusedArgumentError):
            read_arguments([f"{word}=x"])
