"""What the settings of nodes and of the cluster refuse, and how they read what somebody else wrote."""

from __future__ import annotations

from tests.support.provider_bench import bench

from stackyard import lab
from stackyard.provider import registry
from stackyard.provider.kinds import Work
from stackyard.provider.resources.cluster_options import RESOURCE as OPTIONS
from stackyard.provider.resources.node_settings.hosts import HOSTS
from stackyard.provider.resources.node_settings.time import TIME
from stackyard.provider.validate import check_block
from stackyard.provider.values import Object


def refusals(kind: str, config: Object) -> list[str]:
    return [problem.detail for problem in check_block(registry.load().resources[kind].schema.block, config)]


def test_wrong_values_of_settings_are_refused_by_name() -> None:
    dns = refusals("proxmox_virtual_environment_dns", {"servers": ["1", "2", "3", "4"]})
    assert dns == ["`servers` has room for 3 servers."]
    hosts = {"entry": [{"address": "10.0.0.1", "hostnames": []}]}
    assert refusals("proxmox_virtual_environment_hosts", hosts) == [
        "`entry.hostnames` needs at least one name."
    ]
    notes = refusals("proxmox_node_config", {"node_name": "", "description": "two\nlines\n"})
    assert [detail.split()[0] for detail in notes] == ["`description`", "`node_name`"]
    options = {"keyboard": "xx", "next_id": {"lower": 1}, "notify": {"replication_target": " a"}}
    found = refusals("proxmox_cluster_options", {**options, "crs_ha_auto_rebalance_margin": 101})
    assert {detail.split()[0] for detail in found} == {
        "`keyboard`",
        "`next_id.lower`",
        "`notify.replication_target`",
        "`crs_ha_auto_rebalance_margin`",
    }


def test_a_hosts_file_of_somebody_else_is_read_line_by_line() -> None:
    found = HOSTS.values({"data": "# head\n\n 10.0.0.1 not\n10.0.0.2\ta  b\n"})
    assert found["entry"] == [{"address": "10.0.0.2", "hostnames": ["a", "b"]}]
    assert found["digest"] == ""


def test_the_time_of_a_node_has_the_offset_that_the_node_tells() -> None:
    found = TIME.values({"timezone": "Asia/Kolkata", "time": 0, "localtime": 19800})
    assert found["local_time"] == "1970-01-01T05:30:00+05:30"
    assert found["utc_time"] == "1970-01-01T00:00:00Z"


async def test_a_description_of_the_cluster_stays_as_it_is_written() -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
        work = Work(session=it.session, type_name="options")
        state = await OPTIONS.create(work, {"description": "no newline", "next_id": {"lower": None}})
        assert state["description"] == "no newline"
        assert state["next_id"] == {"lower": None, "upper": None}
        await work.client.put("/cluster/options", {"description": "by hand"})
        read = await OPTIONS.read(work, state)
        assert read is not None
        assert read["description"] == "by hand\n"
