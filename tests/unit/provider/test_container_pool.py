"""Another pool for a container: the same container, in that pool."""

from __future__ import annotations

from typing import Any

from tests.support.provider_bench import bench
from tests.support.provider_container import TEMPLATE, plant_templates_here

from stackyard import lab

CONTAINER = "proxmox_virtual_environment_container"
MADE: dict[str, Any] = {
    "node_name": "pve1",
    "vm_id": 200,
    "started": False,
    "disk": [{"datastore_id": "local-lvm", "size": 1}],
    "initialization": [{"hostname": "made"}],
    "operating_system": [{"template_file_id": TEMPLATE, "type": "debian"}],
}


async def test_a_container_moves_from_pool_to_pool_and_out_of_all() -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
        plant_templates_here(running)
        client = it.session.client
        await client.post("/pools", {"poolid": "more"})

        async def pools() -> list[str]:
            guests = await client.get("/cluster/resources", {"type": "vm"})
            return [str(one.get("pool", "")) for one in guests]

        for pool in ("apps", "more", ""):
            await it.apply(CONTAINER, **MADE | {"pool_id": pool})
            assert await pools() == [pool]
            assert await it.is_settled(CONTAINER, **MADE | {"pool_id": pool})
            # Whoever moved it by hand meanwhile, or died between the two calls, is in nobody's way.
            if pool:
                await client.put("/pools", {"poolid": pool, "vms": 200, "delete": True})
        made = [one.path for one in running.world.journal.entries(0) if one.method == "POST"]
        assert sum(path.endswith("/lxc") for path in made) == 1
