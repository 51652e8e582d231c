"""The path from a site to running guests in a lab: plan, guard, apply, verify, drift, destroy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import real_engine
from tests.support.judges import find_judge
from tests.support.path import Yard, make_yard, mirror_of

from stackyard import lab
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

WEB: dict[str, Any] = {"name": "web", "vmid": 500, "preset": "vm-xsmall", "image": "debian-12"}
DNS: dict[str, Any] = {
    "name": "dns",
    "type": "ct",
    "vmid": 501,
    "image": "debian-13-ct",
    "cores": 1,
    "memory": 512,
    "disk": 4,
}


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    engine = real_engine(Flavour.TOFU)
    with lab.running(nodes=("pve1", "pve2"), ssh_port=0) as running:
        made = make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(engine.path))
        made.write_env("t", [WEB, DNS])
        yield made


def actions(document: dict[str, Any]) -> dict[str, str]:
    return {change["subject"]: change["action"] for change in document["changes"]}


def meddle(yard: Yard, vm_id: int, **options: Any) -> None:
    """Change a guest by hand, behind the back of everything."""
    world = yard.running.world

    def change() -> None:
        with world.store.transaction():
            guest = world.guests.get(vm_id)
            assert guest is not None
            world.store.put("guests", str(vm_id), {**guest, "config": {**guest["config"], **options}})

    yard.running.on_loop(change)


@pytest.mark.terraform
def test_another_engine_goes_on_where_one_stopped(yard: Yard) -> None:
    yard.write_env("t", [DNS])
    terraform = yard.with_env(STACKYARD_TOFU=str(real_engine(Flavour.TERRAFORM).path))
    terraform.run("apply", "t", "--no-verify")
    assert yard.json("plan", "t")["has_changes"] is False
    assert terraform.json("plan", "t")["has_changes"] is False


def test_a_site_becomes_guests_and_stays_that_way(yard: Yard) -> None:
    planned = yard.json("plan", "t", "--detailed-exitcode", status=2)
    assert actions(planned)["VM web (500 on pve1)"] == "create"
    assert yard.guests() == {}

    applied = yard.json("apply", "t")
    assert applied["applied"]["remove"] == 0
    assert {up["name"]: up["vm_id"] for up in applied["guests"]} == {"web": 500, "dns": 501}
    assert all(up["addresses"] for up in applied["guests"])
    assert {vm_id: guest["status"] for vm_id, guest in yard.guests().items()} == {
        500: "running",
        501: "running",
    }

    assert yard.json("plan", "t", "--detailed-exitcode")["has_changes"] is False
    output = yard.json("output", "env:t")["guests"]
    assert (output["web"]["vm_id"], output["dns"]["type"]) == (500, "ct")
    assert not any(address.startswith("127.") for guest in output.values() for address in guest["ipv4"])


def test_what_would_be_lost_is_refused_with_the_command_that_permits_it(yard: Yard) -> None:
    yard.run("apply", "t", "--no-verify")
    yard.write_env("t", [DNS])
    error = yard.json("apply", "t", status=1)["error"]
    assert [found["code"] for found in error["diagnostics"]].count("E-GUARD-DESTROYS-GUEST") == 1
    assert "--allow-destroy" in error["remedy"]
    assert set(yard.guests()) == {500, 501}

    yard.write_env("t", [])
    assert yard.run("apply", "t", status=65).stdout == ""
    assert set(yard.guests()) == {500, 501}

    # No permission makes nothing a plan.
    yard.run("apply", "t", "--allow-destroy", "web,dns", status=65)
    assert set(yard.guests()) == {500, 501}
    yard.write_env("t", [DNS])
    yard.run("apply", "t", "--allow-destroy", "web,debian-12.qcow2")
    assert set(yard.guests()) == {501}


def test_a_new_key_is_a_rename_and_not_a_new_guest(yard: Yard) -> None:
    yard.run("apply", "t", "--no-verify")
    before = yard.guests()[500]["config"]
    yard.write_env("t", [{**WEB, "name": "www"}, DNS])
    assert yard.codes("apply", "t") == ["E-GUARD-RENAMES-GUEST"]
    yard.run("apply", "t", "--accept-renames", "--no-verify")
    after = yard.guests()[500]["config"]
    assert (after["name"], after["scsi0"], after["vmgenid"]) == ("www", before["scsi0"], before["vmgenid"])


def test_a_guest_that_nobody_manages_is_adopted_only_on_request(yard: Yard) -> None:
    yard.run("apply", "t", "--no-verify")
    (yard.folder / ".stackyard" / "state" / "objects.sqlite").unlink()
    found = yard.codes("apply", "t", "--no-verify")
    assert found == ["E-GUARD-UNMANAGED-GUEST", "E-GUARD-UNMANAGED-GUEST"]
    assert set(yard.guests()) == {500, 501}


def test_drift_is_listed_by_attribute_and_corrected(yard: Yard) -> None:
    yard.run("apply", "t", "--no-verify")
    assert yard.json("drift", "t", "--detailed-exitcode")["has_drift"] is False
    meddle(yard, 500, tags="surprise")
    drift = yard.json("drift", "t", "--detailed-exitcode", status=2)
    assert [change["subject"] for change in drift["managed"]] == ["VM web (500 on pve1)"]
    assert any("tags" in d["attribute"] for d in drift["managed"][0]["differences"])
    yard.run("apply", "t", "--no-verify")
    assert yard.json("drift", "t")["has_drift"] is False


def test_a_saved_plan_is_applied_only_while_it_fits(yard: Yard) -> None:
    yard.run("plan", "t", "--out", "dev.plan")
    secret = yard.running.api_token.partition("=")[2].encode()
    assert secret not in (yard.folder / "dev.plan").read_bytes()
    yard.write_env("t", [{**WEB, "memory": 2048}, DNS])
    error = yard.json("apply", "t", "--plan", "dev.plan", status=65)["error"]
    assert error["code"] == "E-PLAN-MOVED"
    assert "the input was" in error["detail"]
    yard.write_env("t", [WEB, DNS])
    yard.run("apply", "t", "--plan", "dev.plan", "--no-verify")
    assert set(yard.guests()) == {500, 501}
    assert yard.json("apply", "t", "--plan", "dev.plan", status=65)["error"]["code"] == "E-PLAN-MOVED"


def test_the_guard_judges_the_saved_plan_and_not_a_new_one(yard: Yard) -> None:
    yard.run("apply", "t", "--no-verify")
    meddle(yard, 501, unprivileged=0)
    yard.run("plan", "t", "--out", "dev.plan", status=3)
    # Put right by hand: a plan that is made now would not touch the container, and the saved one replaces it.
    meddle(yard, 501, unprivileged=1)
    assert yard.codes("apply", "t", "--plan", "dev.plan") == ["E-GUARD-DESTROYS-GUEST"]
    assert set(yard.guests()) == {500, 501}


def test_a_saved_plan_is_not_applied_with_options_that_change_the_state(yard: Yard) -> None:
    yard.run("plan", "t", "--out", "dev.plan")
    for option in ("--adopt", "--accept-renames"):
        error = yard.json("apply", "t", "--plan", "dev.plan", option, status=64)["error"]
        assert "plan --out" in error["detail"]
    assert yard.guests() == {}


@pytest.mark.parametrize(
    ("change", "code", "status"),
    [
        ({"node": "pve9"}, "E-SITE", 65),
        ({"bridge": "vmbr7"}, "E-GUARD-NO-SUCH-BRIDGE", 1),
        ({"disks": [{"datastore": "gone"}]}, "E-GUARD-NO-SUCH-STORAGE", 1),
        ({"memory": 10_000_000}, "E-GUARD-TOO-MUCH-MEMORY", 1),
    ],
)
def test_what_the_cluster_cannot_give_is_said_before_anything_is_made(
    yard: Yard, change: dict[str, Any], code: str, status: int
) -> None:
    yard.write_env("t", [{**WEB, **change}])
    error = yard.json("apply", "t", status=status)["error"]
    assert code in str([error["code"], *(found["code"] for found in error["diagnostics"])])
    assert yard.guests() == {}


def test_a_wrong_token_is_one_clear_error_before_anything_is_planned(yard: Yard) -> None:
    wrong = "root@pam!lab=00000000-0000-0000-0000-000000000000"
    (yard.folder / "secrets.yaml").write_text(f"api_tokens:\n  lab: {wrong}\n")
    error = yard.json("plan", "t", status=1)["error"]
    assert "token" in (error["summary"] + error["detail"] + error["remedy"]).lower()
    assert wrong.partition("=")[2] not in yard.run("plan", "t", "-v", status=None).stderr


def test_everything_can_be_removed_by_name(yard: Yard) -> None:
    yard.run("apply", "t", "--no-verify")
    assert sorted(yard.codes("destroy", "t")) == ["E-GUARD-DESTROYS-GUEST", "E-GUARD-DESTROYS-GUEST"]
    yard.run("destroy", "t", "--allow-destroy", "web,dns")
    assert yard.guests() == {}
    assert yard.json("destroy", "t")["has_changes"] is False


def test_no_secret_is_left_anywhere(yard: Yard) -> None:
    shown = yard.run("apply", "t", "-v", "--events", "--no-verify")
    secrets = [yard.running.api_token.partition("=")[2], yard.running.password]
    for secret in secrets:
        assert secret not in shown.stdout
        assert secret not in shown.stderr
        for path in yard.folder.rglob("*"):
            if path.is_file():
                assert secret.encode() not in path.read_bytes(), path
    modes = [path.stat().st_mode & 0o077 for path in (yard.folder / ".stackyard").iterdir()]
    assert (yard.folder / ".stackyard").stat().st_mode & 0o077 == 0
    assert modes


def test_networks_of_the_site_are_a_target_of_their_own(yard: Yard) -> None:
    site = yard.folder / "site.yaml"
    bridge = "  inner:\n    type: bridge\n    bridge: vmbr7\n    create: true\n"
    site.write_text(site.read_text() + bridge)
    assert yard.codes("apply", "site:shared", "-H", "lab") == ["E-GUARD-RELOADS-NETWORK"]
    yard.run("apply", "site:shared", "-H", "lab", "--allow-network-reload", "pve1,pve2")
    yard.write_env("t", [{**WEB, "network": "inner"}])
    yard.run("apply", "t", "--no-verify")
    assert "bridge=vmbr7" in yard.guests()[500]["config"]["net0"]


@pytest.mark.bpg
def test_the_real_provider_sees_nothing_to_change_and_the_other_way_round(yard: Yard, tmp_path: Path) -> None:
    settings = mirror_of(find_judge("bpg"), Path(yard.env["STACKYARD_TOFU"]), tmp_path / "bpg")
    bpg = yard.with_env(STACKYARD_PROVIDER="bpg", STACKYARD_TOFU_CONFIG=str(settings))
    yard.run("apply", "t", "--no-verify")
    assert bpg.json("plan", "t")["changes"] == []
    bpg.run("destroy", "t", "--allow-destroy", "web,dns")
    bpg.run("apply", "t", "--no-verify")
    assert yard.json("plan", "t")["changes"] == []
