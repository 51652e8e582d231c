"""The pains that users of Atlantis, Digger, Terragrunt and Terramate report, as far as they need no forge."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest
from tests.support.engine import find_real
from tests.support.gitops_repo import PullRepository

from stackyard.clients.forge.model import ForgeKind
from stackyard.clients.forge.open_forge import open_forge
from stackyard.engine.version import Flavour
from stackyard.gitops.checkout import Checkouts
from stackyard.gitops.context import GitopsContext
from stackyard.gitops.model import ChangedTarget, TargetState
from stackyard.gitops.plan import PlanOrder, plan_targets
from stackyard.gitops.runs import share_store
from stackyard.gitops.targets import TargetChanges, find_changed_targets
from stackyard.sources.store import ChosenStore

CODE = 'terraform {\n  backend "http" {}\n}\nresource "terraform_data" "x" { input = "x" }\n'
MANY = 300
# Far more than it takes on two shared cores; a selection that looks at everything takes minutes.
BUDGET_S = 20.0


async def changes_of(folder: Path, files: dict[str, str], change: dict[str, str | None]) -> TargetChanges:
    pull = PullRepository(folder)
    base = pull.commit(files)
    head = pull.commit(change, branch="work")
    checkouts = await pull.fetched()
    async with checkouts.merge_result(base, head) as checkout:
        return await find_changed_targets(checkouts, checkout, base, ChosenStore(base=folder / "store"))


async def test_pain_05_one_change_among_many_stacks_costs_one_selection(tmp_path: Path) -> None:
    files = {f"stacks/s{number}/main.tf": CODE for number in range(MANY)}
    began = time.monotonic()
    found = await changes_of(tmp_path, files, {"stacks/s7/main.tf": CODE + "# other\n"})
    assert time.monotonic() - began < BUDGET_S
    assert [one.target for one in found.targets] == ["stack:s7"]


@pytest.mark.parametrize(
    "changed",
    [
        "modules/base/main.tf",
        "modules/inner/main.tf",
        "data/hosts.json",
        "shared/extra.tfvars",
        "stacks/a/t.tpl",
    ],
)
async def test_pain_07_what_code_reads_selects_it_wherever_it_is(tmp_path: Path, changed: str) -> None:
    files = {
        "stacks/a/main.tf": CODE
        + 'module "base" { source = "../../modules/base" }\n'
        + 'locals { hosts = jsondecode(file("${path.module}/../../data/hosts.json")) }\n'
        + 'output "t" { value = templatefile("${path.module}/t.tpl", {}) }\n',
        "stacks/a/stack.yaml": "var_files: [../../shared/extra.tfvars]\n",
        "stacks/a/t.tpl": "x\n",
        "stacks/b/main.tf": CODE,
        "modules/base/main.tf": 'module "inner" { source = "../inner" }\n',
        "modules/inner/main.tf": "# nothing\n",
        "data/hosts.json": "{}\n",
        "shared/extra.tfvars": "# nothing\n",
    }
    found = await changes_of(tmp_path, files, {changed: files[changed] + "\n"})
    assert [one.target for one in found.targets] == ["stack:a"]
    assert any(changed in reason for reason in found.targets[0].reasons)


@pytest.mark.tofu
@pytest.mark.timeout(120)
async def test_pain_10_stacks_are_planned_at_once_from_an_empty_cache(tmp_path: Path) -> None:
    tofu = await asyncio.to_thread(find_real, Flavour.TOFU)
    assert not isinstance(tofu, str)
    os.environ["STACKYARD_TOFU"] = str(tofu.path)
    names = [f"s{number}" for number in range(4)]
    pull = PullRepository(tmp_path)
    base = pull.commit({f"stacks/{name}/main.tf": CODE for name in names})
    checkouts: Checkouts = await pull.fetched("main")
    forge = open_forge(ForgeKind.GITEA, "http://127.0.0.1:9", "yard/infra", "unused")
    store = ChosenStore(base=tmp_path / "control" / ".stackyard")
    context = GitopsContext(forge=forge, checkouts=checkouts, store=store, at_once=4)
    async with checkouts.at(base) as checkout:
        share_store(context, checkout)
        order = PlanOrder(
            targets=[ChangedTarget(target=f"stack:{name}", reasons=()) for name in names],
        )
        planned = await plan_targets(context, checkout, order)
    assert [(one.target, one.state) for one in planned] == [
        (f"stack:{name}", TargetState.CHANGES) for name in names
    ], [one.error for one in planned]
    assert len({one.plan for one in planned}) == len(names)
