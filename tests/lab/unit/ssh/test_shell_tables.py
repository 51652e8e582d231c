"""The tables of Proxmox's commands fit the declared API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pvelab.server import facts
from pvelab.ssh.programs.backup import QMRESTORE, VZDUMP
from pvelab.ssh.programs.cli.model import Alias, Command, Tree
from pvelab.ssh.programs.cli.run import Tool
from pvelab.ssh.programs.ha_manager import HA_MANAGER
from pvelab.ssh.programs.pct import PCT
from pvelab.ssh.programs.pveam import PVEAM
from pvelab.ssh.programs.pvecm import PVECM
from pvelab.ssh.programs.pvenode import PVENODE
from pvelab.ssh.programs.pvesm import PVESM
from pvelab.ssh.programs.pveum import PVEUM
from pvelab.ssh.programs.qm import QM

FACTS = facts.load()
TOOLS = (HA_MANAGER, PCT, PVEAM, PVECM, PVENODE, PVESM, PVEUM, QM, QMRESTORE, VZDUMP)


def entries(prefix: str, tree: Tree | Command | Alias) -> Iterator[tuple[str, Command | Alias]]:
    if isinstance(tree, Command | Alias):
        yield prefix, tree
        return
    for name, entry in tree.items():
        yield from entries(f"{prefix} {name}", entry)


def all_entries() -> list[tuple[Tool, str, Command | Alias]]:
    return [(tool, name, entry) for tool in TOOLS for name, entry in entries(tool.name, tool.tree)]


COMMANDS = {name: entry for _, name, entry in all_entries() if isinstance(entry, Command)}
ALIASES = {name: (tool, entry) for tool, name, entry in all_entries() if isinstance(entry, Alias)}


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if command.route])
def test_a_command_calls_a_method_that_takes_its_arguments(name: str) -> None:
    command = COMMANDS[name]
    method = FACTS[command.route]
    known = {*method.parameters, *command.parameters, "extra-args"}
    assert {*command.arguments, *command.fixed, *filter(None, [command.listed])} <= known
    in_path = {part[1:-1] for part in method.path.split("/") if part.startswith("{")}
    assert in_path <= {*command.arguments, *command.fixed, "node"}


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if not command.route])
def test_a_command_without_a_method_has_work_of_its_own(name: str) -> None:
    command = COMMANDS[name]
    assert command.own is not None
    assert set(command.arguments) <= set(command.parameters)


@pytest.mark.parametrize("name", ALIASES)
def test_another_name_leads_to_a_command(name: str) -> None:
    tool, alias = ALIASES[name]
    parent = name.rpartition(" ")[0]
    assert f"{parent} {alias.words}" in COMMANDS or f"{tool.name} {alias.words}" in COMMANDS
