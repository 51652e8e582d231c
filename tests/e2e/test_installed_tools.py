"""The real programs that `tools install` installs say their versions as the catalogue reads them."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.judges import JUDGES, find_judge
from tests.support.programs import LONG_S

from stackyard.engine.tools.probe import Health, probe
from stackyard.engine.tools.table import INSTALLABLE

NAMES = [pytest.param(name, marks=pytest.mark.judges(name)) for name in INSTALLABLE if name in JUDGES]


@pytest.mark.parametrize("name", NAMES)
def test_the_version_of_the_real_program_is_read(name: str) -> None:
    program = find_judge(name)
    found = asyncio.run(probe(program, INSTALLABLE[name].tool, timeout_s=LONG_S, from_memory=False))
    assert found.health is Health.OK, found.reason
    assert found.said is not None
    assert found.said.product == name
