"""Runs of targets on a store that several machines reach: with its key, and credentials of the target."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.support.engine import find_real
from tests.support.gitops_repo import PullRepository
from tests.support.two_machines import share_store as shared_store

from stackyard.clients.forge.model import ForgeKind
from stackyard.clients.forge.open_forge import open_forge
from stackyard.clients.objects.sealed import make_master_key
from stackyard.engine.version import Flavour
from stackyard.gitops.context import CredentialFiles, GitopsContext
from stackyard.gitops.model import ChangedTarget, Checkout, Credentials, TargetState
from stackyard.gitops.plan import PlanOrder, plan_targets
from stackyard.gitops.runs import TargetRun, run_verb
from stackyard.sources.store import ChosenStore

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

CODE = """
terraform {
  backend "http" {}
}
variable "given" { type = string }
resource "terraform_data" "x" { input = var.given }
"""


def _credentials(folder: Path) -> CredentialFiles:
    for name, text in {"plan.env": "TF_VAR_given=seen\n", "apply.env": "TF_VAR_given=seen\n"}.items():
        path = folder / name
        folder.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o600)
    return CredentialFiles(folder)


@pytest.mark.parametrize("is_in_secrets", [True, False])
async def test_a_plan_in_a_shared_store_is_applied_from_another_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_in_secrets: bool
) -> None:
    tofu = await asyncio.to_thread(find_real, Flavour.TOFU)
    assert not isinstance(tofu, str)
    monkeypatch.setenv("STACKYARD_TOFU", str(tofu.path))
    pull = PullRepository(tmp_path)
    base = pull.commit({"stacks/web/main.tf": CODE})
    checkouts = await pull.fetched("main")
    with shared_store("postgresql", tmp_path) as shared:
        for name, value in shared.env.items():
            monkeypatch.setenv(name, value)
        key = make_master_key() if is_in_secrets else None
        store = ChosenStore(base=tmp_path / "control", address=shared.address, site_key=key)
        if key is None:
            path = tmp_path / "site.key"
            path.write_text(make_master_key())
            path.chmod(0o600)
            monkeypatch.setenv("STACKYARD_SITE_KEY_FILE", str(path))
        forge = open_forge(ForgeKind.GITEA, "http://127.0.0.1:9", "yard/infra", "unused")
        context = GitopsContext(
            forge=forge, checkouts=checkouts, store=store, credentials=_credentials(tmp_path / "credentials")
        )
        async with checkouts.at(base) as checkout:
            order = PlanOrder(targets=[ChangedTarget(target="stack:web", reasons=())])
            (planned,) = await plan_targets(context, checkout, order)
        assert planned.state is TargetState.CHANGES, planned.error
        async with checkouts.at(base) as checkout:
            await _apply(context, checkout, planned.plan)


async def _apply(context: GitopsContext, checkout: Checkout, plan: str) -> None:
    run = TargetRun(verb="apply", target="stack:web", words=("--plan", plan), credentials=Credentials.APPLY)
    answer = await run_verb(context, checkout, run)
    assert answer.document["applied"]["add"] == 1, answer.error
    assert not (checkout.folder / ".stackyard" / "state").exists()
    # The key of the site was never on a disk of ours but where its owner keeps it.
    assert not [path for path in checkout.folder.parent.iterdir() if "key" in path.name]
    assert "PGPASSWORD" in os.environ
