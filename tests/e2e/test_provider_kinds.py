"""Kinds of the built-in provider, each through its whole life, and with the real bpg/proxmox in turns.

The cases are in `tests/support/kinds`, one file for each family. STACKYARD_TEST_BPG names the binary of the
real bpg/proxmox; without it, its checks are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.engine import engine, real_engine
from tests.support.kinds import find_cases
from tests.support.parity import COLUMNS, Case, check
from tests.support.provider import Stack, driven, require_bpg

from stackyard import bpg_schema, lab
from stackyard.engine.version import Engine, Flavour
from stackyard.provider import registry

__all__ = ["engine"]

# Kinds that older tests prove (`test_provider_parity.py` and others); the list only shrinks.
OLDER = set("container download_file file pool vm".split())
CASES = [pytest.param(case, id=case.id) for case in find_cases()]


@pytest.fixture
def running(case: Case) -> Iterator[lab.Running]:
    with lab.running(**{"nodes": ("pve1", "pve2"), **case.lab}) as it:
        yield it


def run(name: str, case: Case, engine: Engine, running: lab.Running, folder: Path) -> None:
    async def scenario(stack: Stack) -> None:
        await check(name, case, stack, running)

    driven(engine, running, folder, scenario)


@pytest.mark.tofu
@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", CASES)
def test_a_kind_goes_through_its_life(case: Case, running: lab.Running, tmp_path: Path) -> None:
    run("life", case, real_engine(Flavour.TOFU), running, tmp_path)


@pytest.mark.terraform
@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES)
def test_a_kind_goes_through_its_life_under_terraform(
    case: Case, running: lab.Running, tmp_path: Path
) -> None:
    run("life", case, real_engine(Flavour.TERRAFORM), running, tmp_path)


@pytest.mark.bpg
@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["apply-ours/plan-bpg", "apply-bpg/plan-ours"])
def test_what_one_provider_does_the_other_leaves_alone(
    engine: Engine, case: Case, name: str, running: lab.Running, tmp_path: Path
) -> None:
    require_bpg()
    run(name, case, engine, running, tmp_path)


def test_every_kind_is_proven_in_every_way_or_says_why_not() -> None:
    cases = find_cases()
    index = bpg_schema.load_index().resources
    proven = {kind for case in cases for kind in case.kinds}
    assert {index[name].kind for name in registry.load().resources} == proven | OLDER
    assert proven & OLDER == set()
    filled = {
        f"{kind} {column}"
        for case in cases
        for kind in case.kinds
        for column in COLUMNS
        if case.proves(kind, column) or f"{kind} {column}" in case.nothing
    }
    assert {f"{kind} {column}" for kind in proven for column in COLUMNS} - filled == set()
