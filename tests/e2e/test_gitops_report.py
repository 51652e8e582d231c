"""The review of newer versions, on a forge in memory and a mirror of providers in a folder."""

from __future__ import annotations

import asyncio
import datetime
from pathlib import Path
from typing import cast

import pytest
from tests.support.engine import find_real
from tests.support.gitops_repo import PullRepository
from tests.support.memory_forge import MemoryForge
from tests.support.registries import fill_mirror

from stackyard.clients.forge.protocol import Forge
from stackyard.engine.version import Flavour
from stackyard.gitops.context import GitopsContext
from stackyard.gitops.upgrade_review import find_upgrades, name_quarter, review_upgrades
from stackyard.sources.store import ChosenStore

pytestmark = pytest.mark.tofu

ADDRESS = "registry.opentofu.org/acme/web"
CODE = """
terraform {
  backend "http" {}
  required_providers {
    web = {
      source  = "acme/web"
      version = "~> 1.0"
    }
  }
}
"""


async def test_newer_versions_are_one_issue_of_the_quarter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror, settings = tmp_path / "mirror", tmp_path / "tofu.rc"
    settings.write_text(f'provider_installation {{\n  filesystem_mirror {{ path = "{mirror}" }}\n}}\n')
    monkeypatch.setenv("TF_CLI_CONFIG_FILE", str(settings))
    tofu = await asyncio.to_thread(find_real, Flavour.TOFU)
    if isinstance(tofu, str):
        pytest.skip(tofu)
    monkeypatch.setenv("STACKYARD_TOFU", str(tofu.path))
    fill_mirror(mirror, ADDRESS, ["1.0.0"])
    origin, forge = PullRepository(tmp_path), MemoryForge()
    origin.commit({"stacks/web/main.tf": CODE})
    checkouts = await origin.fetched("main")
    context = GitopsContext(
        forge=cast(Forge, forge),
        checkouts=checkouts,
        store=ChosenStore(base=tmp_path / "control" / ".stackyard"),
    )
    commit = origin.commit({"README.md": "yard"})
    await checkouts.fetch(origin.access, ["refs/heads/main"])
    async with checkouts.at(commit) as checkout:
        found = await review_upgrades(context, await find_upgrades(context, checkout), "2030-Q1")
        assert (found.newer, found.issue) == (0, 0)
        fill_mirror(mirror, ADDRESS, ["1.2.0", "2.0.0"])
        found = await review_upgrades(context, await find_upgrades(context, checkout), "2030-Q1")
        assert found.newer == 1
        issue = forge.all_issues[found.issue]
        assert issue.title == "Upgrade review 2030-Q1"
        assert "`1.2.0`" in issue.body
        assert "`2.0.0`" in issue.body
        forge.calls.clear()
        assert (
            await review_upgrades(context, await find_upgrades(context, checkout), "2030-Q1")
        ).issue == found.issue
        assert forge.calls == ["find_issues"]


def test_a_quarter_has_three_months() -> None:
    days = [datetime.date(2030, month, 1) for month in (1, 3, 4, 12)]
    assert [name_quarter(day) for day in days] == ["2030-Q1", "2030-Q1", "2030-Q2", "2030-Q4"]
