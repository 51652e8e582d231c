"""`stackyard gitops check` beside a real Gitea."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
from tests.support.cli import stackyard
from tests.support.gitops_rig import open_gitops

pytestmark = [pytest.mark.judges("gitea"), pytest.mark.timeout(300)]


async def test_a_branch_that_anybody_may_push_to_is_named_and_mended(tmp_path: Path) -> None:
    rules = "gitops:\n  approvals: 2\n"
    async with open_gitops(tmp_path, {"stackyard.yaml": rules}) as yard:
        words = ("gitops", "check", "--forge", "gitea", "--url", yard.rig.server.url)
        place = (*words, "--repository", yard.rig.repository, "--json")
        variables = {**os.environ, "STACKYARD_FORGE_TOKEN": yard.rig.users["bot"].token}

        async def check(*options: str) -> tuple[int, dict[str, list[str]]]:
            ended = await asyncio.to_thread(stackyard, *place, *options, cwd=tmp_path, env=variables)
            return ended.status, json.loads(ended.stdout)

        status, said = await check()
        assert (status, len(said["missing"])) == (1, 4)
        assert "the rules of stackyard.yaml 2" in said["missing"][3]
        status, said = await check("--fix")
        assert (status, said["missing"], len(said["fixed"])) == (0, [], 4)
        assert (await check())[0] == 0
        protection = await yard.forge.protection("main")
        assert protection is not None
        assert (protection.blocks_pushes, protection.checks, protection.approvals) == (
            *(True, ("stackyard",)),
            2,
        )
