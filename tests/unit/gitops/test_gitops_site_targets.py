"""Which targets of a site a pull request changes: by their own file, and by what they share."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from tests.support.gitops_repo import PullRepository

from stackyard.gitops.runs import TargetRun
from stackyard.gitops.targets import TargetChanges, find_changed_targets
from stackyard.sources.store import ChosenStore
from stackyard.state.targets import TargetRecord, Targets

FILES = {
    "site.yaml": "x\n",
    "nodes/pve1.yaml": "x\n",
    "presets/small.yaml": "x\n",
    "envs/dev.yaml": "x\n",
    "envs/prod.yaml": "x\n",
    "manifests/n1.yaml": "x\n",
    "clusters/home/cluster.yaml": "cluster_name: home\n",
    "deployment.md": "x\n",
}


def note(targets: Targets, record: TargetRecord) -> None:
    targets.change(record.state, lambda before: record)


async def find(folder: Path, change: dict[str, str | None], *applied: str) -> TargetChanges:
    pull = PullRepository(folder)
    base = pull.commit(FILES)
    head = pull.commit(change, branch="work")
    checkouts = await pull.fetched()
    store = ChosenStore(base=folder / "store")
    with closing(store.open()) as objects:
        for target in applied:
            kind, _, name = target.partition(":")
            record = TargetRecord(state=f"{kind}/{name}/pve1", kind=kind, name=name, node="pve1")
            note(Targets(objects), record)
    async with checkouts.merge_result(base, head) as checkout:
        return await find_changed_targets(checkouts, checkout, base, store)


@pytest.mark.parametrize(
    ("change", "targets"),
    [
        ({"envs/dev.yaml": "y\n"}, ["env:dev"]),
        ({"envs/new.yaml": "y\n"}, ["env:new"]),
        ({"envs/.hidden.yaml": "y\n", "envs/-x.yaml": "y\n"}, ["env:dev", "env:prod"]),
        ({"presets/small.yaml": "y\n"}, ["env:dev", "env:prod"]),
        ({"site.yaml": "y\n"}, ["hypervisor:pve1", "env:dev", "env:prod"]),
        ({"README.md": "y\n", "docs/x.yaml": "y\n"}, []),
        ({"clusters/home/nodes.yaml": "y\n"}, ["cluster:home"]),
        ({"manifests/n1.yaml": "y\n"}, []),
    ],
)
async def test_a_file_selects_its_target_and_what_is_shared_all_of_them(
    tmp_path: Path, change: dict[str, str | None], targets: list[str]
) -> None:
    found = await find(tmp_path, change)
    assert [one.target for one in found.targets] == targets


async def test_envs_come_after_the_nodes_that_they_are_on(tmp_path: Path) -> None:
    found = await find(tmp_path, {"site.yaml": "y\n"})
    assert {one.target: one.after for one in found.targets} == {
        "hypervisor:pve1": (),
        "env:dev": ("hypervisor:pve1",),
        "env:prod": ("hypervisor:pve1",),
    }


async def test_what_is_removed_counts_only_where_it_was_applied(tmp_path: Path) -> None:
    change: dict[str, str | None] = {"envs/dev.yaml": None, "envs/prod.yaml": None}
    found = await find(tmp_path, change, "env:dev")
    assert [(one.target, one.is_removed) for one in found.targets] == [("env:dev", True)]


def test_a_manifest_is_run_on_its_host() -> None:
    one = TargetRun(verb="plan", target="manifest:n1@pve1", words=("--out", "store:"), host="pve1")
    assert one.arguments == ("plan", "manifest:n1", "--json", "-H", "pve1", "--out", "store:")
    other = TargetRun(verb="apply", target="stack:a/b", words=("--plan", "store:x"))
    assert other.arguments == ("apply", "stack:a/b", "--json", "--plan", "store:x")
