"""What an upgrade writes: one version for all who share a constraint, and never a major one by itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.registries import fill_mirror
from tests.support.stacks import repository

from stackyard.sources.stacks.repository import StackRepository
from stackyard.upgrades.cli_config import CliConfig, Method
from stackyard.upgrades.fetch import open_fetcher
from stackyard.upgrades.majors import MajorGate
from stackyard.upgrades.plan_writes import WritePlan, plan_writes
from stackyard.upgrades.plan_writes import _connect as connect
from stackyard.upgrades.report import UpgradeRow, build_report
from stackyard.upgrades.sources import Sources

ADDRESS = "registry.opentofu.org/acme/thing"
CALL = 'module "m" {\n  source = "../../modules/m"\n}\n'


def code(constraint: str | None, name: str = "thing") -> str:
    version = "" if constraint is None else f'      version = "{constraint}"\n'
    inner = f'    {name} = {{\n      source = "acme/thing"\n{version}    }}\n'
    return f"terraform {{\n  required_providers {{\n{inner}  }}\n}}\n"


def lock(version: str) -> str:
    return f'provider "{ADDRESS}" {{\n  version = "{version}"\n}}\n'


async def report(
    folder: Path, files: Mapping[str, str | None], versions: list[str], names: str = ""
) -> tuple[StackRepository, tuple[UpgradeRow, ...]]:
    fill_mirror(folder / "mirror", ADDRESS, versions)
    found = repository(folder / "repo", files)
    config = CliConfig(methods=(Method(kind="filesystem_mirror", place=str(folder / "mirror")),))
    chosen = [found.stacks[name] for name in names or found.stacks]
    async with open_fetcher() as fetcher:
        sources = Sources(fetcher, config)
        return found, await build_report(found, chosen, dict.fromkeys(found.stacks, sources))


async def plan(
    folder: Path, files: Mapping[str, str | None], versions: list[str], names: str = ""
) -> WritePlan:
    return plan_writes(*await report(folder, files, versions, names))


def targets(found: WritePlan) -> dict[str, str]:
    return {one.row.stack: str(one.target) for unit in found.units for one in unit.upgrades}


def texts(found: WritePlan) -> list[str]:
    return [edit.text for unit in found.units for edits in unit.edits.values() for edit in edits]


async def test_before_1_0_only_patches_are_taken_though_the_constraint_allows_more(tmp_path: Path) -> None:
    files = {"stacks/a/main.tf": code("~> 0.8"), "stacks/a/.terraform.lock.hcl": lock("0.8.0")}
    found = await plan(tmp_path, files, ["0.8.0", "0.8.3", "0.9.0"])
    assert targets(found) == {"a": "0.8.3"}
    assert texts(found) == []
    assert found.held == ()


async def test_a_range_and_an_exact_version_are_left_and_named(tmp_path: Path) -> None:
    files = {
        "stacks/a/main.tf": code(">= 1.0, < 1.5"),
        "stacks/a/.terraform.lock.hcl": lock("1.0.0"),
        "stacks/b/main.tf": code("1.0.0"),
        "stacks/c/main.tf": code("~> 1.0, != 1.9.0"),
    }
    found = await plan(tmp_path, files, ["1.0.0", "1.4.2", "1.8.0", "1.9.0"])
    assert targets(found) == {"a": "1.4.2", "b": "1.0.0", "c": "1.8.0"}
    assert texts(found) == ["~> 1.8, != 1.9.0"]
    reasons = {one.row.stack: one.reason for one in found.held}
    assert reasons["a"].startswith("stacks/a/main.tf:5: `>= 1.0, < 1.5` does not allow it")
    assert reasons["b"].startswith("stacks/b/main.tf:5: `1.0.0` does not allow it")


async def test_a_shared_constraint_is_raised_to_what_every_stack_can_take(tmp_path: Path) -> None:
    files = {
        "modules/m/main.tf": code("~> 1.0"),
        "stacks/a/main.tf": CALL,
        "stacks/b/main.tf": CALL + code("< 1.5"),
    }
    versions = ["1.0.0", "1.4.0", "1.9.0"]
    found = await plan(tmp_path, files, versions)
    assert targets(found) == {"a": "1.4.0", "b": "1.4.0"}
    assert [unit.stacks for unit in found.units] == [("a", "b")]
    assert texts(found) == ["~> 1.4"]
    assert {one.row.stack for one in found.held} == {"a", "b"}
    alone = await plan(tmp_path, files, versions, "a")
    # The constraint already allows it, and is not raised behind the back of the other stack.
    assert targets(alone) == {"a": "1.9.0"}
    assert texts(alone) == []


async def test_a_lock_file_that_the_code_has_left_behind_does_not_hold_it_back(tmp_path: Path) -> None:
    files = {"stacks/a/main.tf": code("~> 2.0"), "stacks/a/.terraform.lock.hcl": lock("1.0.0")}
    found = await plan(tmp_path, files, ["1.0.0", "1.1.0", "2.0.0", "2.3.0"])
    assert targets(found) == {"a": "2.3.0"}


async def test_a_provider_without_a_constraint_is_locked_within_its_major_version(tmp_path: Path) -> None:
    files = {"stacks/a/main.tf": code(None), "stacks/a/.terraform.lock.hcl": lock("1.0.0")}
    versions = ["1.0.0", "1.1.0", "2.0.0"]
    assert targets(await plan(tmp_path, files, versions)) == {"a": "1.1.0"}
    rows = (await report(tmp_path, files, versions))[1]
    assert str(rows[0].allowed) == "2.0.0"


async def test_a_critical_stack_takes_a_proven_major_version_though_a_newer_one_is_not(
    tmp_path: Path,
) -> None:
    files = {"stacks/a/main.tf": code("~> 1.0"), "stacks/a/.terraform.lock.hcl": lock("1.0.0")}
    found, rows = await report(tmp_path, files, ["1.0.0", "2.0.0", "2.1.0", "3.0.0"])
    key = ("provider", ADDRESS)
    gate = MajorGate(
        critical=frozenset("a"), users={key: ("sandbox",)}, proven={key: {"sandbox": frozenset({(2,)})}}
    )
    planned = plan_writes(found, rows, gate)
    assert targets(planned) == {"a": "2.1.0"}
    assert texts(planned) == ["~> 2.1"]
    assert [(str(one.version), one.is_major) for one in planned.held] == [("3.0.0", True)]


async def test_plugin_folders_of_the_engine_are_used_where_nothing_is_configured(
    tmp_path: Path, home: Path
) -> None:
    fill_mirror(home / ".terraform.d" / "plugins", ADDRESS, ["1.0.0", "1.1.0"], is_packed=False)
    found = repository(tmp_path, {"stacks/a/main.tf": code("~> 1.0")})
    async with open_fetcher() as fetcher:
        rows = await build_report(found, found.stacks.values(), {"a": Sources(fetcher, CliConfig())})
    assert str(rows[0].newer.minor) == "1.1.0"


@settings(max_examples=60)
@given(st.dictionaries(st.integers(0, 12), st.sets(st.integers(0, 8), max_size=4)))
def test_what_has_a_member_in_common_is_together(sets: dict[int, set[int]]) -> None:
    groups = connect(sets)
    assert sorted(one for group in groups for one in group) == sorted(sets)
    group_of = {one: number for number, group in enumerate(groups) for one in group}
    for one, members in sets.items():
        for other, others in sets.items():
            if members & others:
                assert group_of[one] == group_of[other]
    for group in groups:
        reached = {group[0]}
        while True:
            more = {one for one in group if any(sets[one] & sets[other] for other in reached)} - reached
            if not more:
                break
            reached |= more
        assert reached == set(group)
