"""Newer minor versions on a real Gitea: one pull request for each stack, updated and never doubled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.gitops_jobs import run_job
from tests.support.gitops_rig import GitopsRig, open_gitops
from tests.support.registries import fill_mirror

from stackyard.clients.forge.model import MergeMethod, PullState

pytestmark = [pytest.mark.tofu, pytest.mark.judges("gitea"), pytest.mark.timeout(300)]

ADDRESS = "registry.opentofu.org/acme/web"
STACK = "stacks/onprem/web/main.tf"
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


async def _report(yard: GitopsRig, folder: Path, *, status: int = 0) -> dict[str, Any]:
    """Report with pull requests, and return what became of the one stack."""
    [one] = (await run_job(yard, folder, "report", "--pulls", status=status))["pulls"]
    return dict(one)


async def test_minor_versions_are_one_rolling_pull_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror, settings = tmp_path / "mirror", tmp_path / "tofu.rc"
    settings.write_text(f'provider_installation {{\n  filesystem_mirror {{ path = "{mirror}" }}\n}}\n')
    monkeypatch.setenv("TF_CLI_CONFIG_FILE", str(settings))
    fill_mirror(mirror, ADDRESS, ["1.0.0"])
    async with open_gitops(tmp_path, {STACK: CODE}) as yard:
        fill_mirror(mirror, ADDRESS, ["1.2.0", "2.0.0"])
        made = await _report(yard, tmp_path)
        assert (made["stack"], made["state"]) == ("onprem/web", "opened"), made
        [pull] = await yard.forge.pulls(PullState.OPEN, base="main")
        assert (pull.number, pull.head_branch) == (made["number"], "stackyard/upgrade/onprem+web")
        changed = {one.path for one in await yard.forge.changed_files(pull.number)}
        assert changed == {STACK, "stacks/onprem/web/.terraform.lock.hcl"}
        main = await yard.forge.branch_tip("main")

        # The same again, on a base branch that moved too, is the same pull request as it is.
        await yard.rig.commit("main", {"README.md": "yard\n"})
        assert (await _report(yard, tmp_path))["state"] == "unchanged"
        assert (await yard.forge.pull(pull.number)).head == pull.head

        fill_mirror(mirror, ADDRESS, ["1.3.0"])
        updated = await _report(yard, tmp_path)
        assert (updated["state"], updated["number"]) == ("updated", pull.number)
        [now] = await yard.forge.pulls(PullState.OPEN, base="main")
        assert (now.number, now.head != pull.head) == (pull.number, True)
        # Nothing was written to the base branch.
        assert await yard.forge.branch_tip("main") not in (main, None, now.head)

        # What somebody closed stays closed until there is a newer version.
        await yard.rig._ask(yard.rig.bot, "PATCH", f"/pulls/{pull.number}", {"state": "closed"})
        assert (await _report(yard, tmp_path))["state"] == "closed"
        assert list(await yard.forge.pulls(PullState.OPEN, base="main")) == []
        fill_mirror(mirror, ADDRESS, ["1.4.0"])
        again = await _report(yard, tmp_path)
        assert (again["state"], again["number"] != pull.number) == ("opened", True)

        # What somebody else committed there is theirs.
        await yard.rig.commit("stackyard/upgrade/onprem+web", {"mine.txt": "x\n"})
        mine = (await yard.forge.pull(again["number"])).head
        fill_mirror(mirror, ADDRESS, ["1.5.0"])
        taken = await _report(yard, tmp_path)
        assert (taken["state"], taken["number"]) == ("taken", again["number"])
        assert (await yard.forge.pull(again["number"])).head == mine

        # Once it is merged, nothing newer is left but what came since.
        await yard.merge(again["number"], MergeMethod.SQUASH)
        fill_mirror(mirror, ADDRESS, ["1.6.0"])
        last = await _report(yard, tmp_path)
        assert (last["state"], last["number"] > again["number"]) == ("opened", True), last
