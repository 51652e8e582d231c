"""Settings that are always there need a table and nothing else: set, read, changed and unset."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from tests.support.provider_bench import bench

from stackyard import lab
from stackyard.provider.fields import TEXT, Field
from stackyard.provider.kinds import Work
from stackyard.provider.singletons import Settings

OPTIONS = Settings(
    path="/cluster/options",
    fields=(Field(attribute="keyboard", form=TEXT), Field(attribute="email_from", form=TEXT)),
    identity=lambda state: "cluster",
).resource(("options",), identify=lambda given: {"id": given}, rules={})


@contextlib.asynccontextmanager
async def run() -> AsyncIterator[Work]:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
        yield Work(session=it.session, type_name="options")


async def test_settings_go_through_their_life_and_leave_others_alone() -> None:
    async with run() as work:
        await work.client.put("/cluster/options", {"language": "de"})
        state = await OPTIONS.create(work, {"keyboard": "de", "email_from": "lab@example.com"})
        assert state == {"id": "cluster", "keyboard": "de", "email_from": "lab@example.com"}
        assert OPTIONS.update is not None
        changed = await OPTIONS.update(work, state, {**state, "keyboard": "fr", "email_from": None})
        assert changed == await OPTIONS.read(work, changed)
        assert changed == {"id": "cluster", "keyboard": "fr", "email_from": None}
        await OPTIONS.delete(work, changed)
        left = await work.client.get("/cluster/options")
        assert (left.get("keyboard"), left.get("language")) == (None, "de")


async def test_what_is_not_set_by_us_is_not_unset_by_us() -> None:
    async with run() as work:
        await work.client.put("/cluster/options", {"email_from": "other@example.com"})
        await OPTIONS.delete(work, {"id": "cluster", "keyboard": None, "email_from": None})
        assert (await work.client.get("/cluster/options"))["email_from"] == "other@example.com"
