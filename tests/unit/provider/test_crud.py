"""An object of a list needs a table and nothing else: made once, read, changed and removed."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest
from tests.support.provider_bench import bench

from stackyard import lab
from stackyard.provider.create_once import ObjectExistsError
from stackyard.provider.crud import Collection
from stackyard.provider.fields import TEXT, Field
from stackyard.provider.kinds import Work
from stackyard.provider.schema import Rule

NAME = "proxmox_virtual_environment_group"
# The example of CONTRIBUTING.md.
GROUP = Collection(
    path="/access/groups",
    key="groupid",
    attribute="group_id",
    fields=(Field(attribute="comment", form=TEXT),),
).resource((NAME,), rules={"group_id": Rule(replace=True)})
RUNNING: list[lab.Running] = []
PLANNED = {"group_id": "admins", "comment": "those who may"}


@contextlib.asynccontextmanager
async def run() -> AsyncIterator[Work]:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
        RUNNING[:] = [running]
        yield Work(session=it.session, type_name=NAME)


async def test_an_object_goes_through_its_life() -> None:
    async with run() as work:
        state = await GROUP.create(work, PLANNED)
        assert state == {"id": "admins", **PLANNED}
        assert work.kept == state
        assert GROUP.update is not None
        changed = await GROUP.update(work, state, {**state, "comment": "others"})
        assert await GROUP.read(work, state) == changed == {**state, "comment": "others"}
        await GROUP.delete(work, changed)
        assert await GROUP.read(work, changed) is None


async def test_an_object_of_somebody_else_is_refused_and_one_that_is_gone_is_removed() -> None:
    async with run() as work:
        await work.client.post("/access/groups", {"groupid": "admins"})
        with pytest.raises(ObjectExistsError, match="admins exists already"):
            await GROUP.create(work, PLANNED)
        state = {"id": "admins", **PLANNED}
        await work.client.delete("/access/groups/admins")
        await GROUP.delete(work, state)
        assert work.warnings == []


async def test_objects_that_are_made_together_are_looked_for_in_one_list() -> None:
    async with run() as work:
        await work.client.get("/version")
        names = [f"group{n}" for n in range(8)]
        for name in names:
            await GROUP.create(work, {"group_id": name, "comment": name})
        journal = [entry.path for entry in RUNNING[0].world.journal.entries() if entry.method == "GET"]
        # One list before all of them, and one after each.
        assert journal.count("/access/groups") == 1 + len(names)


async def test_an_object_that_has_just_gone_is_made_again_and_one_that_came_is_refused() -> None:
    async with run() as work:
        state = await GROUP.create(work, PLANNED)
        await GROUP.delete(work, state)
        await GROUP.create(work, PLANNED)
        # Made after the list was read: Proxmox itself refuses it.
        await work.client.post("/access/groups", {"groupid": "late"})
        with pytest.raises(ObjectExistsError, match="late exists already"):
            await GROUP.create(work, {"group_id": "late", "comment": "x"})


async def test_a_lost_answer_does_not_make_somebody_elses_object_ours() -> None:
    async with run() as work:
        await GROUP.create(work, PLANNED)
        # Made after the list was read, and what Proxmox says of it is lost.
        await work.client.post("/access/groups", {"groupid": "late", "comment": "theirs"})
        RUNNING[0].add_fault("drop", method="POST", path="/access/groups", when="after", times=3)
        with pytest.raises(ObjectExistsError, match="differs in comment"):
            await GROUP.create(work, {"group_id": "late", "comment": "ours"})
        assert (await work.client.get("/access/groups/late"))["comment"] == "theirs"


def test_an_object_is_imported_by_its_id() -> None:
    assert GROUP.identify("admins") == {"id": "admins", "group_id": "admins"}
