"""A guest or a storage in a pool: what is refused, and what is gone already."""

from __future__ import annotations

import pytest
from tests.support.provider_bench import bench

from stackyard import lab
from stackyard.provider.kinds import Work
from stackyard.provider.problems import ImportIdError
from stackyard.provider.resources.pool_membership import RESOURCE


@pytest.mark.parametrize("given", ["web", "web/vm", "web/vm/x", "web/disk/1", "/vm/1", "web/storage/a/b"])
def test_an_id_of_no_membership_is_refused(given: str) -> None:
    with pytest.raises(ImportIdError):
        RESOURCE.identify(given)


def test_a_membership_is_of_one_guest_or_one_storage() -> None:
    assert RESOURCE.validate is not None
    assert len(list(RESOURCE.validate({"pool_id": "web"}))) == 1
    assert len(list(RESOURCE.validate({"pool_id": "web", "vm_id": 1, "storage_id": "a"}))) == 1
    assert not list(RESOURCE.validate({"pool_id": "web", "vm_id": 1}))


async def test_a_membership_goes_with_its_pool() -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
        work = Work(session=it.session, type_name="proxmox_pool_membership")
        await work.client.post("/pools", {"poolid": "web"})
        made = await RESOURCE.create(work, {"pool_id": "web", "storage_id": "local", "vm_id": None})
        assert (made["id"], made["type"]) == ("web/storage/local", "storage")
        await work.client.put("/pools", {"poolid": "web", "storage": "local", "delete": True})
        assert await RESOURCE.read(work, made) is None
        await RESOURCE.delete(work, made)
        await work.client.delete("/pools?poolid=web")
        assert await RESOURCE.read(work, made) is None
        await RESOURCE.delete(work, made)
