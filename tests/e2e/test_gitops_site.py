"""A site whose envs are changed by pull requests: from a branch on Gitea to guests on the lab."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.engine import real_engine
from tests.support.gitops_rig import open_gitops, target_of
from tests.support.path import SMALL_GUEST, Yard, make_yard

from stackyard import lab
from stackyard.engine.version import Flavour
from stackyard.gitops.model import TargetState

pytestmark = [pytest.mark.tofu, pytest.mark.judges("gitea"), pytest.mark.timeout(300)]


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    engine = real_engine(Flavour.TOFU)
    with lab.running(nodes=("pve1", "pve2"), ssh_port=0) as running:
        yield make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(engine.path))


def _files(folder: Path) -> dict[str, str]:
    paths = (path for path in folder.rglob("*") if path.is_file() and ".stackyard" not in path.parts)
    return {str(path.relative_to(folder)): path.read_text() for path in paths}


def _env(*guests: dict[str, object]) -> str:
    return yaml.safe_dump({"node": "lab", "posture": "local", "vms": list(guests)}, sort_keys=False)


def _meddle(yard: Yard, vm_id: int, **options: object) -> None:
    """Change a guest by hand, behind the back of everything."""
    world = yard.running.world

    def change() -> None:
        with world.store.transaction():
            guest = world.guests.get(vm_id)
            assert guest is not None
            world.store.put("guests", str(vm_id), {**guest, "config": {**guest["config"], **options}})

    yard.running.on_loop(change)


async def test_guests_of_an_env_come_change_and_go_by_pull_requests(tmp_path: Path, yard: Yard) -> None:
    async with open_gitops(tmp_path, _files(yard.folder)) as works:
        made = await works.apply_new("add-web", {"envs/t.yaml": _env(SMALL_GUEST)})
        web = target_of(made, "env:t")
        assert web.state is TargetState.APPLIED, await works.our_comment(made.number)
        assert [one["name"] for one in web.outcome["guests"]] == ["web"]
        assert set(yard.guests()) == {101}
        # Somebody changes it by hand, and a pull request changes something else of it.
        _meddle(yard, 101, memory=256)
        pull = await works.open_pull("tag", {"envs/t.yaml": _env({**SMALL_GUEST, "tags": ["one"]})})
        drifted = target_of(await works.plan(pull.number), "env:t")
        assert [one["subject"] for one in drifted.drift] == ["container web (101 on pve1)"], drifted
        assert "changed by hand since the last apply, and overwritten" in await works.our_comment(pull.number)
        pull = await works.open_pull("remove-t", {"envs/t.yaml": None})
        refused = target_of(await works.plan(pull.number), "env:t")
        assert (refused.state, refused.is_removed) == (TargetState.REFUSED, True), refused
        await works.say(pull.number, "stackyard allow destroy web")
        planned = target_of(await works.plan(pull.number), "env:t")
        assert planned.state is TargetState.CHANGES, await works.our_comment(pull.number)
        await works.approve(pull.number)
        await works.merge(pull.number)
        gone = target_of(await works.apply(pull.number), "env:t")
        assert gone.state is TargetState.APPLIED, await works.our_comment(pull.number)
        assert yard.guests() == {}
