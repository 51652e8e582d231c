"""Groups that load their commands late list them as if they had not."""

from __future__ import annotations

import click
import pytest
from scripts.generate_docs import all_commands

from stackyard.cli.command import Group, LazyCommand

GROUPS = {path: (command, ctx) for path, command, ctx in all_commands() if isinstance(command, Group)}


@pytest.mark.parametrize("path", GROUPS)
def test_the_line_of_a_command_in_a_list_is_the_first_of_its_own_help(path: str) -> None:
    group, ctx = GROUPS[path]
    shown = " ".join(group.get_help(ctx).split())
    for verb in group.list_commands(ctx):
        command = group.get_command(ctx, verb)
        assert command is not None
        assert f" {verb} {command.get_short_help_str(200)}" in shown


def test_a_list_loads_nothing() -> None:
    later = {"broken": LazyCommand(module="no.such.module", name="broken", help="Never loaded.")}
    group = Group("group", later=later)
    assert "Never loaded." in group.get_help(click.Context(group))


def test_what_is_loaded_late_must_be_a_command() -> None:
    group = Group(
        "group", later={"odd": LazyCommand(module="stackyard.base.errors", name="UsageError", help="Odd.")}
    )
    with pytest.raises(TypeError, match="is not a command"):
        group.get_command(click.Context(group), "odd")
