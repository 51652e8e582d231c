"""The step that makes datasets, against the double of TrueNAS."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.support.truenas import TrueNas, run_truenas

from pvelab.truenas.service import Release
from stackyard.base.events import Event
from stackyard.bootstrap.run import ColdBootError, PlannedStep, Timeline, run_steps
from stackyard.bootstrap.storage.dataset import DatasetDiffersError, DatasetStep, WantedDataset
from stackyard.clients.truenas import DatasetProperties, TrueNasLoginError, TrueNasRefusedError

GIB = 2**30
BOTH = [Release.REST_ONLY, Release.RPC_ONLY]


def wanted(name: str, *, may_update: bool = False, **properties: str | int) -> WantedDataset:
    return WantedDataset(
        name=name,
        properties=DatasetProperties(**properties),  # type: ignore[arg-type]
        may_update=may_update,
    )


async def run(nas: TrueNas, datasets: Sequence[WantedDataset], **endpoint: str) -> Timeline:
    step = DatasetStep(endpoint=nas.endpoint(**endpoint), datasets=tuple(datasets), patience_s=20.0)
    return await run_steps([PlannedStep(step=step)])


def names(nas: TrueNas) -> list[str]:
    return [entry["id"] for entry in nas.datasets.list_entries()]


@pytest.mark.parametrize("release", BOTH)
async def test_missing_datasets_are_made_and_a_second_run_changes_nothing(release: Release) -> None:
    async with run_truenas(release) as nas:
        datasets = [wanted("tank/k8s", compression="ZSTD"), wanted("tank/k8s/volumes", quota=500 * GIB)]
        assert (await run(nas, datasets)).has_changes
        assert names(nas) == ["tank", "tank/k8s", "tank/k8s/volumes"]
        assert not (await run(nas, datasets)).has_changes


@pytest.mark.parametrize("release", BOTH)
async def test_a_lost_answer_is_asked_again_and_nothing_is_made_twice(release: Release) -> None:
    async with run_truenas(release) as nas:
        nas.lab.add_fault("truenas", how="lost-answer", path="pool.dataset.create", times=1)
        nas.lab.add_fault("truenas", how="lost-answer", path="/api/v2.0/pool/dataset", nth=2)
        assert (await run(nas, [wanted("tank/k8s"), wanted("tank/backup")])).has_changes
        assert names(nas) == ["tank", "tank/backup", "tank/k8s"]


async def test_a_different_property_is_refused_unless_the_file_says_update() -> None:
    async with run_truenas() as nas:
        nas.datasets.create({"name": "tank/k8s", "compression": "OFF", "comments": "mine"})
        with pytest.raises(ColdBootError, match=r"tank/k8s: compression is OFF and is to be ZSTD") as caught:
            await run(nas, [wanted("tank/k8s", compression="ZSTD")])
        assert isinstance(caught.value.errors[0], DatasetDiffersError)
        before = nas.datasets.list_entries()[1]
        assert before["compression"]["value"] == "OFF"
        await run(nas, [wanted("tank/k8s", compression="ZSTD", may_update=True)])
        after = nas.datasets.list_entries()[1]
        assert (after["compression"]["value"], after["comments"]["value"]) == ("ZSTD", "mine")


async def test_properties_that_the_file_does_not_name_stay_as_they_are() -> None:
    async with run_truenas() as nas:
        nas.datasets.create({"name": "tank/k8s", "quota": 2 * GIB})
        assert not (await run(nas, [wanted("tank/k8s")])).has_changes


async def test_a_dataset_without_its_parent_is_refused_in_the_words_of_truenas() -> None:
    async with run_truenas() as nas:
        with pytest.raises(ColdBootError, match=r"Parent dataset \(tank/a\) does not exist") as caught:
            await run(nas, [wanted("tank/a/b")])
        assert isinstance(caught.value.errors[0], TrueNasRefusedError)


async def test_a_wrong_key_stops_at_once_and_is_shown_nowhere() -> None:
    seen: list[Event] = []
    async with run_truenas() as nas:
        step = DatasetStep(endpoint=nas.endpoint(api_key="1-not-the-key"), datasets=(wanted("tank/a"),))
        with pytest.raises(ColdBootError) as caught:
            await run_steps([PlannedStep(step=step)], emit=seen.append)
        assert isinstance(caught.value.errors[0], TrueNasLoginError)
    assert "not-the-key" not in repr([seen, step, caught.value])


async def test_a_truenas_that_comes_up_late_is_waited_for_with_a_reason() -> None:
    seen: list[Event] = []
    async with run_truenas() as nas:
        nas.lab.add_fault("truenas", how="down", times=2)
        step = DatasetStep(endpoint=nas.endpoint(), datasets=(wanted("tank/a"),))
        await run_steps([PlannedStep(step=step)], emit=seen.append)
        assert names(nas) == ["tank", "tank/a"]
    assert nas.endpoint().label in repr(seen)
