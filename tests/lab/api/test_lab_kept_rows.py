"""A kept lab from before some methods were removed: it opens, and what it holds of them does not matter."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.lab import LabClient, Refused, lab_client

from pvelab.machines.machine import Kind

# As an earlier lab wrote them: a collection, a key, and what was in the document.
ROWS = (
    ("notices", "1", {"severity": "info", "title": "t", "message": "m", "time": 1, "fields": {}}),
    ("outbox", "1", {"target": "mail", "title": "t"}),
    (
        "realm_sync_jobs",
        "night",
        {"type": "realm-sync", "schedule": "minutely", "scope": "both", "realm": "x"},
    ),
    ("sdn_prefix_lists", "one", {"type": "prefix-list", "entries": ["action=permit,prefix=::/0,seq=1"]}),
    ("sdn", "running", {"version": 1, "prefix_lists": {"gone": {"type": "prefix-list"}}, "route_maps": {}}),
    ("ceph", "flags", {"noout": 1}),
    ("ceph_fs", "files", {"data_pool": "files_data", "metadata_pool": "files_metadata"}),
    ("disk_pools", "pve1|lvm|group", {"name": "group", "devices": ["/dev/sda"], "size": 1}),
    ("disk_pools", "pve1|directory|files", {"name": "files", "devices": ["/dev/sdb"], "size": 1}),
)


async def test_rows_of_what_the_lab_no_longer_has_do_not_matter(tmp_path: Path) -> None:
    async def write(api: LabClient) -> None:
        with api.world.store.transaction():
            for collection, key, document in ROWS:
                api.world.store.put(collection, key, document)

    async def use(api: LabClient) -> None:
        assert api.world.store.get("realm_sync_jobs", "night") is not None
        assert await api.done(await api.put("/cluster/sdn")) == "OK"
        await api.post("/cluster/sdn/rollback")
        assert await api.get("/nodes/pve1/disks/zfs") == []
        assert await api.done(await api.post("/nodes/pve1/qemu", vmid=100)) == "OK"
        assert await api.done(await api.post("/nodes/pve1/vzdump", vmid=100, storage="local")) == "OK"
        for path in ("/cluster/notifications/matchers", "/cluster/jobs/realm-sync", "/nodes/pve1/ceph/fs"):
            with pytest.raises(Refused, match=r"501 .* the lab does not have GET "):
                await api.get(path)
        await api.pass_time(120)
        assert not [task for task in await api.get("/cluster/tasks") if task["type"] == "auth-realm-sync"]

    for work in (write, use):
        async with lab_client(data=tmp_path, guests=Kind.RECORDED) as api:
            api.world.clock.hold()
            await work(api)
