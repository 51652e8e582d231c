"""The way into guests of a lab: through their node, to nobody else, and again where it breaks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
from tests.support.guest_yard import GuestYard, guest_yard, statuses

from stackyard.base import events
from stackyard.clients import proxmox, ssh
from stackyard.clients.ssh.keys import new_key_pair
from stackyard.desired import Verify, Vm
from stackyard.operator.guests import configure, inspect
from stackyard.operator.guests.access import GuestSilentError, NoKeyError, log_in
from stackyard.path.port_probe import UnansweredError, port_probes
from stackyard.path.verify import verify_guest


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuestYard]:
    with guest_yard(tmp_path_factory.mktemp("access")) as made:
        yield made


async def test_a_connection_that_breaks_in_the_middle_is_made_again_and_the_spec_applied(
    yard: GuestYard,
) -> None:
    manifest = yard.manifest("dropped", {"name": "drop", "type": "ct", "vmid": 313, "spec": "base"})

    async with yard.up(manifest) as made:
        node, guest, up, context = made.node("drop"), made.guest("drop"), made.up["drop"], made.context
        assert context.jump is not None
        jump = await context.jumps.shell(context.jump)

        def drop(event: events.Event) -> None:
            if isinstance(event, events.LogLine) and not jump.is_closed:
                jump._connection.abort()

        done = await configure(node, guest, up, context, drop)
        assert [(phase.name, phase.status.value) for phase in done] == [
            *(("wait_ssh", "passed"), ("apply_spec", "skipped"), ("wait_ssh", "passed")),
            ("apply_spec", "passed"),
        ], done
        assert "done again" in done[1].detail
        found = await inspect(node, guest, up.addresses[0], context)
        assert set(statuses(found).values()) == {"passed"}, found


async def test_a_guest_that_shows_another_key_than_the_one_it_was_given_is_not_spoken_to(
    yard: GuestYard,
) -> None:
    manifest = yard.manifest("forged", {"name": "true", "type": "vm", "vmid": 308})
    other = new_key_pair().public

    async with yard.up(manifest) as made:
        node, guest, up = made.node("true"), made.guest("true"), made.up["true"]
        hosts = made.context.hosts(node, guest, up.addresses[0])
        assert all(host.host_keys for host in hosts)
        async with log_in(hosts, made.context) as shell:
            assert shell.host_key.split()[:2] == hosts[0].host_keys[0].split()
        wrong = [dataclasses.replace(host, host_keys=(other,)) for host in hosts]
        with pytest.raises(ssh.HostKeyChangedError, match="not among those that are pinned"):
            async with log_in(wrong, made.context):
                pass
        # What is in a plan is the name of the secret.
        assert isinstance(guest, Vm)
        assert guest.cloud_init is not None
        assert "PRIVATE KEY" not in guest.model_dump_json()
        done = await configure(node, guest, up, made.context)
        assert statuses(done) == {
            "wait_ssh": "passed",
            "wait_first_boot": "passed",
            "apply_spec": "skipped",
        }


async def test_ports_of_guests_are_tried_from_the_node_that_reaches_them(yard: GuestYard) -> None:
    manifest = yard.manifest("knock", {"name": "door", "type": "vm", "vmid": 309})

    async with yard.up(manifest) as made, port_probes(made.resolved.jump) as probe_port:
        address = made.up["door"].addresses[0]
        assert (await probe_port(address, 22, waits_for_line=True)).startswith(b"SSH-")
        assert await probe_port(address, 22) == b""
        guest = made.guest("door")
        wants_ssh = guest.model_copy(update={"verify": Verify(ssh=True, tcp_ports=(22,))})
        async with proxmox.Client(made.resolved.connection) as client:
            assert (await verify_guest(client, wants_ssh, probe_port=probe_port)).addresses[0] == address
        for place in ((address, 4711), ("10.31.255.250", 22)):
            with pytest.raises(UnansweredError):
                await probe_port(*place)


async def test_a_guest_that_lets_nobody_in_is_given_up_with_what_was_tried(yard: GuestYard) -> None:
    manifest = yard.manifest("closed", {"name": "shut", "type": "vm", "vmid": 310})

    async with yard.up(manifest) as made:
        node, guest, up = made.node("shut"), made.guest("shut"), made.up["shut"]
        key = yard.folder / "other-key"
        key.write_text(new_key_pair().private)
        hosts = made.context.hosts(node, guest, up.addresses[0])
        with pytest.raises(GuestSilentError, match="Permission denied"):
            async with log_in([dataclasses.replace(host, key_files=(key,)) for host in hosts], made.context):
                pass
        with pytest.raises(NoKeyError):
            async with log_in([dataclasses.replace(host, key_files=()) for host in hosts], made.context):
                pass
        nowhere = dataclasses.replace(up, addresses=())
        assert statuses(await configure(node, guest, nowhere, made.context)) == {"wait_ssh": "skipped"}
        assert statuses(await inspect(node, guest, None, made.context)) == {"verify_address": "failed"}
