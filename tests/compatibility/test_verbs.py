"""Every verb answers `--json` as it did at earlier commits."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.compatibility.command_lines import COMMANDS, command_lines, needs_engine, run_file
from tests.compatibility.golden import compare, kept_names
from tests.support.cli import stackyard
from tests.support.engine import real_engine

from stackyard.cli.root import root
from stackyard.engine.version import Flavour


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.tofu if needs_engine(name) else ()) for name in COMMANDS]
)
def test_commands_answer_as_before(name: str, tmp_path: Path, home: Path) -> None:
    # Where no engine is needed, none is found, whatever the machine has.
    engine = real_engine(Flavour.TOFU).path if needs_engine(name) else tmp_path / "no-engine"
    try:
        compare(f"verbs/{name}.json", run_file(name, tmp_path, home, str(engine)))
    finally:
        if any(line.startswith("lab up") for line in command_lines(name)):
            # Whatever happened, no lab stays in the background.
            stackyard("lab", "down", "--all")


def test_every_kept_answer_belongs_to_commands() -> None:
    kept = {name for name in kept_names("verbs") if name.endswith(".json")}
    assert kept == {f"{name}.json" for name in COMMANDS}


def test_every_verb_with_json_is_run() -> None:
    lines = [shlex.split(line) for name in COMMANDS for line in command_lines(name)]
    missing = [path for path in verbs() if not any(words[: len(path)] == path for words in lines)]
    assert missing == []


def verbs() -> Iterator[list[str]]:
    """Return the words of every verb that knows `--json`, also of those that no list shows."""

    def below(command: click.Command, words: list[str]) -> Iterator[list[str]]:
        context = click.Context(command)
        if isinstance(command, click.Group):
            for name in sorted({*command.list_commands(context), *getattr(command, "_later", {})}):
                found = command.get_command(context, name)
                assert found is not None
                yield from below(found, [*words, name])
        elif any("--json" in param.opts for param in command.params):
            yield words

    return below(root, [])
