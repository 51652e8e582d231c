"""Guests of a lab, from the inside: pushed, pulled, looked at, all through the SSH of their node."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import shutil
from collections.abc import Iterator

import pytest
from tests.support.guest_yard import GATEWAY, GuestYard, guest_yard, statuses, told_in

from stackyard.base import events
from stackyard.controller import ControllerOptions, controller
from stackyard.operator.guests import configure, inspect
from stackyard.operator.outcome import PhaseStatus

WEB = """\
schema_version: 1
access:
  posture: prod
  users: [{name: ops, sudo: true}, {name: app}]
platform: {packages: [nginx], services: {enable: [nginx], disable: [cron]}}
config: {timezone: Europe/Zurich}
"""


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuestYard]:
    with guest_yard(tmp_path_factory.mktemp("guests")) as made:
        made.write(specs__web=WEB)
        yield made


async def test_a_pushed_spec_is_applied_once_looked_at_and_applied_again_without_a_change(
    yard: GuestYard,
) -> None:
    manifest = yard.manifest("pushed", {"name": "web", "type": "vm", "vmid": 301, "spec": "web"})
    lines: list[str] = []

    def emit(event: events.Event) -> None:
        if isinstance(event, events.LogLine):
            lines.append(event.text)

    async with yard.up(manifest) as made:
        node, guest, up = made.node("web"), made.guest("web"), made.up["web"]
        before = await inspect(node, guest, up.addresses[0], made.context)
        assert statuses(before)["verify_spec"] == "failed"
        first = await configure(node, guest, up, made.context, emit)
        assert statuses(first) == {
            "wait_ssh": "passed",
            "wait_first_boot": "passed",
            "apply_spec": "passed",
        }
        assert any("fail2ban" in line for line in lines)
        found = await inspect(node, guest, up.addresses[0], made.context)
        assert set(statuses(found).values()) == {"passed"}, found
        assert [phase.name for phase in found] == [
            *("verify_address", "verify_ssh", "verify_users", "verify_packages", "verify_services"),
            "verify_spec",
        ]
        # The posture counts, and who works here still can.
        assert await told_in(made, "web", "cat /etc/sudoers.d/50-stackyard-ops") == "ops ALL=(ALL) ALL"
        sshd = await told_in(made, "web", "cat /etc/ssh/sshd_config.d/50-stackyard.conf")
        assert "PermitRootLogin no" in sshd
        assert await told_in(made, "web", "hostname") == "web"
        marker = await told_in(made, "web", "cat /var/lib/stackyard/complete.json")
        assert '"mode":"push"' in marker
        again = await configure(node, guest, up, made.context)
        assert statuses(again) == statuses(first)


async def test_every_mismatch_of_a_guest_is_named_at_once(yard: GuestYard) -> None:
    manifest = yard.manifest("wrong", {"name": "bad", "type": "vm", "vmid": 302, "spec": "web"})

    async with yard.up(manifest) as made:
        node, guest, up = made.node("bad"), made.guest("bad"), made.up["bad"]
        assert statuses(await configure(node, guest, up, made.context))["apply_spec"] == "passed"
        undo = "apt-get remove -y nginx; userdel -r app; : >/home/ops/.ssh/authorized_keys"
        await told_in(made, "bad", f"{undo}; echo {{}} >/var/lib/stackyard/complete.json")
        found = {one.name: one for one in await inspect(node, guest, up.addresses[0], made.context)}
        assert statuses(tuple(found.values())) == {
            "verify_address": "passed",
            "verify_ssh": "passed",
            "verify_users": "failed",
            "verify_packages": "failed",
            "verify_services": "failed",
            "verify_spec": "failed",
        }
        assert "There is no user app." in found["verify_users"].detail
        assert "A key of ops is missing" in found["verify_users"].detail
        assert "nginx is not installed." in found["verify_packages"].detail
        assert "nginx is" in found["verify_services"].detail
        assert "has not been applied" in found["verify_spec"].detail


async def test_a_container_gets_its_users_and_packages_though_no_cloud_init_runs_in_it(
    yard: GuestYard,
) -> None:
    node = {"name": "box", "type": "ct", "vmid": 303, "spec": "web", "packages": ["tree"]}
    manifest = yard.manifest("boxes", node, {"name": "plain", "type": "ct", "vmid": 304})

    async with yard.up(manifest) as made:
        for name, users in (("box", "ops, app, homestak"), ("plain", "homestak")):
            one, guest, up = made.node(name), made.guest(name), made.up[name]
            done = await configure(one, guest, up, made.context)
            assert statuses(done) == {"wait_ssh": "passed", "apply_spec": "passed"}, done
            found = {phase.name: phase for phase in await inspect(one, guest, up.addresses[0], made.context)}
            assert {phase.status for phase in found.values()} == {PhaseStatus.PASSED}, found
            assert found["verify_users"].detail == users
            assert "sudo" in found["verify_packages"].detail
        assert "tree" in await told_in(made, "box", "dpkg-query --show tree")
        # Root is let in no more, and the operator has its own way.
        assert await told_in(made, "box", "echo $SUDO_USER") == "homestak"


async def test_a_guest_fetches_its_spec_at_its_first_boot_from_the_controller_of_the_run(
    yard: GuestYard,
) -> None:
    pulls = {"execution": {"mode": "pull"}, "spec": "web", "type": "vm"}
    manifest = yard.manifest("pulled", {"name": "self", "vmid": 305, **pulls})

    async with yard.up(manifest) as made:
        node, guest, up = made.node("self"), made.guest("self"), made.up["self"]
        assert made.service is not None
        done = await configure(node, guest, up, made.context)
        assert statuses(done) == {"wait_ssh": "passed", "wait_spec": "passed"}, done
        assert done[-1].detail == ""
        assert '"mode":"pull"' in await told_in(made, "self", "cat /var/lib/stackyard/complete.json")
        assert "PermitRootLogin no" in await told_in(
            made, "self", "cat /etc/ssh/sshd_config.d/50-stackyard.conf"
        )
        found = await inspect(node, guest, up.addresses[0], made.context)
        assert set(statuses(found).values()) == {"passed"}, found
        boots = made.context.boots
    record = boots.read()["self"]
    assert record.pull is not None
    assert record.pull.is_settled
    # A spec that has changed since is fetched again, from the controller of another run.
    yard.write(specs__web=WEB.replace("[nginx]", "[nginx, jq]", 1))
    try:
        async with yard.up(manifest) as made:
            node, guest, up = made.node("self"), made.guest("self"), made.up["self"]
            again = await configure(node, guest, up, made.context)
            assert statuses(again)["wait_spec"] == "passed", again
            assert "another version" in again[-1].detail
            assert made.service is not None
            assert made.service.tokens["self"] != record.pull.token
            # What cloud-init said at the first boot stays as it was: nothing is planned again.
            assert made.context.boots.read()["self"] == record
            assert "jq" in await told_in(made, "self", "dpkg-query --show jq")
    finally:
        yard.write(specs__web=WEB)


async def test_a_guest_that_cannot_fetch_says_why_and_fetches_once_it_can(yard: GuestYard) -> None:
    pulls = {"execution": {"mode": "pull"}, "spec": "web", "type": "vm"}
    manifest = yard.manifest("late", {"name": "late", "vmid": 306, **pulls})

    async with yard.up(manifest) as made:
        node, guest, up = made.node("late"), made.guest("late"), made.up["late"]
        await configure(node, guest, up, made.context)
        # As if the first boot had failed, with settings of a controller that is no more.
        gone = "sed -i s,^STACKYARD_SERVER=.*,STACKYARD_SERVER=https://127.0.0.1:1, /etc/stackyard/guest.env"
        clean = "rm -f /var/lib/stackyard/*.json"
        run = f"{clean}; STACKYARD_RETRIES=0 /usr/local/sbin/stackyard-bootstrap || :"
        await told_in(made, "late", f"{gone}; {run}")
        failed = await told_in(made, "late", "cat /var/lib/stackyard/failed.json")
        assert "cannot be reached" in failed
        found = await inspect(node, guest, up.addresses[0], made.context)
        assert "cannot be reached" in {one.name: one.detail for one in found}["verify_spec"]
        done = await configure(node, guest, up, made.context)
        assert statuses(done)["wait_spec"] == "passed", done
        assert "cannot be reached" in done[-1].detail
        # And without a controller it fails, with the reason.
        await told_in(made, "late", f"{gone}; {run}")
        alone = dataclasses.replace(made.context, service=None)
        failed_phases = await configure(node, guest, up, alone)
        assert statuses(failed_phases)["wait_spec"] == "failed"
        assert "cannot be reached" in failed_phases[-1].detail


async def test_a_step_that_fails_is_told_with_the_last_lines_and_without_secrets(yard: GuestYard) -> None:
    secret = "canary-of-the-site"
    spec = f"schema_version: 1\nplatform: {{packages: [no-such-package, {secret}]}}\n"
    yard.write(specs__broken=spec)
    manifest = yard.manifest("broken", {"name": "torn", "type": "ct", "vmid": 307, "spec": "broken"})

    async with yard.up(manifest) as made:
        context = dataclasses.replace(made.context, redactor=made.context.redactor.with_secrets([secret]))
        lines: list[str] = []
        node, guest, up = made.node("torn"), made.guest("torn"), made.up["torn"]
        done = await configure(node, guest, up, context, lambda event: lines.append(repr(event)))
        assert statuses(done) == {"wait_ssh": "passed", "apply_spec": "failed"}
        assert "no-such-package" in done[-1].detail
        assert secret not in done[-1].detail + "".join(lines)
        found = {one.name: one for one in await inspect(node, guest, up.addresses[0], context)}
        assert found["verify_spec"].status is PhaseStatus.FAILED


def test_a_guest_boots_and_applies_its_spec_from_the_controller_that_the_site_names(yard: GuestYard) -> None:
    """Nothing is done over SSH but to look: what the guest becomes, it has fetched by itself."""
    site = yard.folder / "site.yaml"
    before, port = site.read_text(), yard.resolver().resolve_host("lab").controller_port
    assert port is not None
    node = {"name": "own", "type": "vm", "vmid": 312, "spec": "base", "execution": {"mode": "pull"}}
    manifest = yard.manifest("served", node)
    yard.write(manifests__served=json.dumps(manifest.document()))

    async def scenario() -> None:
        seen: list[str] = []
        options = ControllerOptions(site=yard.folder, bind="127.0.0.1", port=port)
        async with (
            controller(options, emit=lambda event: seen.append(repr(event))),
            yard.up(manifest) as made,
        ):
            assert made.service is None
            context, up = made.context, made.up["own"]
            found = await configure(made.node("own"), made.guest("own"), up, context)
            assert statuses(found) == {"wait_ssh": "passed", "wait_spec": "passed"}, found
            assert found[-1].detail == ""
            looked = await inspect(made.node("own"), made.guest("own"), up.addresses[0], context)
            assert set(statuses(looked).values()) == {"passed"}, looked
        assert any("GET /spec/own?format=shell 200" in line for line in seen)

    try:
        address = f"https://{GATEWAY}:{port}"
        site.write_text(before.replace("defaults:\n", f"defaults:\n  spec_server: {address}\n", 1))
        asyncio.run(scenario())
    finally:
        site.write_text(before)


PLAYBOOK = """\
- hosts: all
  tasks:
    - ansible.builtin.apt: {name: "{{ packages }}", update_cache: true}
    - ansible.builtin.copy: {content: "{{ hostname }} {{ posture_name }}\\n", dest: /etc/made-by-ansible}
"""


@pytest.mark.skipif(shutil.which("ansible-runner") is None, reason="ansible-runner is not installed")
def test_the_playbook_of_the_site_is_run_where_it_has_one_and_a_failure_of_it_is_told(
    yard: GuestYard,
) -> None:
    path = yard.folder / "ansible" / "playbooks" / "config-apply.yml"
    path.parent.mkdir(parents=True)
    path.write_text(PLAYBOOK)
    manifest = yard.manifest("played", {"name": "stage", "type": "vm", "vmid": 311, "spec": "base"})

    async def scenario() -> None:
        async with yard.up(manifest) as made:
            node, guest, up = made.node("stage"), made.guest("stage"), made.up["stage"]
            done = await configure(node, guest, up, made.context)
            assert statuses(done) == {
                "wait_ssh": "passed",
                "wait_first_boot": "passed",
                "run_playbook": "passed",
                "write_marker": "passed",
            }, done
            assert await told_in(made, "stage", "cat /etc/made-by-ansible") == "stage dev"
            path.write_text("- hosts: all\n  tasks: [{ansible.builtin.command: /bin/false}]\n")
            failed = await configure(node, guest, up, made.context)
            assert statuses(failed)["run_playbook"] == "failed"
            assert "fatal" in failed[-1].detail

    try:
        asyncio.run(scenario())
    finally:
        path.unlink()
