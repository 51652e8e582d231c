"""From a plain deployment.json to guests: the embedded store, a bucket, committed files, encrypted values."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import stackyard
from tests.support.deployment import CONTAINER, SMALL, WHOLE, edited, text_of
from tests.support.deployment_bucket import ENV, new_bucket
from tests.support.deployment_rig import Rig, running_rig
from tests.support.provider import lab_api, lab_table
from tests.support.seaweed import require_seaweed

from pvelab.world.ha.config import RESOURCES, RULES
from stackyard.clients.objects import open_objects
from stackyard.secrets import Keyring, create_sops_file, user_recipient
from stackyard.state import Actor, StateService

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

OBJECT = edited(SMALL, datastore_default="local-lvm")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with running_rig(tmp_path, is_applied=False) as made:
        (made.yard.folder / ".stackyard" / "deployment" / "objects.sqlite").unlink()
        yield made


def actions(document: dict[str, Any]) -> list[str]:
    return [change["action"] for change in document["changes"]]


def test_the_container_of_the_seed_goes_all_the_way_and_back(rig: Rig) -> None:
    yard = rig.yard
    (yard.folder / "deployment.json").write_text(text_of(OBJECT))
    first = yard.json("deployment", "put", "deployment.json", "--note", "as on the page")
    assert first["version"]["id"] == "1"
    assert sorted(actions(yard.json("plan", "deployment"))) == ["create", "create", "create"]
    applied = yard.json("apply", "deployment")
    assert [guest["vm_id"] for guest in applied["guests"]] == [123]
    made = yard.guests()[123]
    assert made["config"]["hostname"] == "my-container"
    assert made["config"]["tags"] == "container;homelab;terraform"
    assert "firewall=1" in made["config"]["net0"]
    assert "tag=10" in made["config"]["net0"]
    assert made["config"]["swap"] == 2048
    assert yard.json("plan", "deployment", "--detailed-exitcode")["has_changes"] is False
    assert yard.json("drift", "deployment", "--detailed-exitcode")["has_drift"] is False
    assert yard.json("output", "deployment")["guests"]["my-container"]["vm_id"] == 123

    yard.run("deployment", "edit", "--set", "containers.my-container.memory_dedicated=1024")
    planned = yard.json("plan", "deployment")
    assert actions(planned) == ["update"]
    yard.run("apply", "deployment", "--no-verify")
    assert yard.guests()[123]["config"]["memory"] == 1024

    yard.run("deployment", "rollback", "1")
    assert actions(yard.json("plan", "deployment")) == ["update"]
    yard.run("apply", "deployment", "--no-verify")
    assert yard.guests()[123]["config"]["memory"] == 2048
    history = yard.json("deployment", "history")["versions"]
    assert [one["kind"] for one in history] == ["rollback", "edit", "put"]
    assert history[0]["etag"] == history[2]["etag"]
    assert history[0]["note"] == "rollback to 1"

    words: list[str] = yard.json("destroy", "deployment", status=1)["error"]["remedy"].split()
    yard.run("destroy", "deployment", "--allow-destroy", words[words.index("--allow-destroy") + 1])
    assert yard.guests() == {}


def test_an_object_that_is_written_while_a_run_waits_is_the_one_that_is_applied(rig: Rig) -> None:
    yard = rig.yard
    rig.plant(OBJECT)
    yard.run("apply", "deployment", "--no-verify")
    objects = open_objects(yard.folder / ".stackyard" / "state")
    states, actor = StateService(objects), Actor(principal="test")
    (name,) = states.names()
    states.locks.lock(name, b'{"ID": "ours", "Operation": "apply", "Who": "me"}', actor)
    yard.run("deployment", "edit", "--set", "containers.my-container.memory_dedicated=1024")
    ended: list[int] = []
    waiting = threading.Thread(
        target=lambda: ended.append(yard.run("apply", "deployment", "--no-verify", status=None).status)
    )
    waiting.start()
    try:
        while not states.head(name).waiting:
            threading.Event().wait(0.02)
        yard.run("deployment", "edit", "--set", "containers.my-container.memory_dedicated=1536")
        states.locks.unlock(name, "ours", actor)
        waiting.join()
    finally:
        objects.close()
    assert ended == [0]
    assert yard.guests()[123]["config"]["memory"] == 1536


def test_a_deployment_whose_object_is_gone_can_be_shown_and_destroyed(rig: Rig) -> None:
    yard = rig.yard
    rig.plant(OBJECT)
    yard.run("apply", "deployment", "--no-verify")
    (yard.folder / ".stackyard" / "deployment" / "objects.sqlite").unlink()
    assert yard.json("plan", "deployment", status=65)["error"]["code"] == "E-DEPLOYMENT-MISSING"
    assert yard.json("output", "deployment", "-H", "pve1")["guests"]["my-container"]["vm_id"] == 123
    words: list[str] = yard.json("destroy", "deployment", "-H", "pve1", status=1)["error"]["remedy"].split()
    named = words[words.index("--allow-destroy") + 1]
    yard.run("destroy", "deployment", "-H", "pve1", "--allow-destroy", named)
    assert yard.guests() == {}


def test_an_object_with_something_of_everything_becomes_guests(rig: Rig) -> None:
    yard = rig.yard
    data = edited(WHOLE, nodes__pve3=None, node_services__agent__per_node__pve3=None)
    data["openbao_cluster"]["root_disk_datastore_by_node"]["pve2"] = "local-lvm"
    data["containers"]["docker-1"]["mount_points"].pop()
    rig.plant(data)
    # Only root@pam itself may give a privileged container the features that Docker needs.
    running = yard.running
    yard = yard.with_env(
        PROXMOX_VE_ENDPOINT=running.url,
        PROXMOX_VE_USERNAME="root@pam",
        PROXMOX_VE_PASSWORD=running.password,
        PROXMOX_VE_FINGERPRINT=running.fingerprint,
    )
    yard.run("apply", "deployment", "--no-verify")
    assert set(yard.guests()) == {123, 153, 605000, 700, 250, 811, 812, 901, 902}
    assert yard.json("plan", "deployment")["has_changes"] is False


def test_the_object_in_a_bucket_needs_no_site_and_no_file(rig: Rig, tmp_path: Path) -> None:
    bucket = new_bucket(require_seaweed())
    running = rig.yard.running
    env = {
        **rig.yard.env,
        **ENV,
        "PROXMOX_VE_ENDPOINT": running.url,
        "PROXMOX_VE_API_TOKEN": running.api_token,
        "PROXMOX_VE_FINGERPRINT": running.fingerprint,
    }
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "deployment.yaml").write_text(f"store: {bucket.address}\n")
    yard = replace(rig.yard, folder=folder, env=env)
    (folder / "d.json").write_text(text_of(OBJECT))
    yard.run("deployment", "put", "d.json")
    yard.run("apply", "deployment", "--no-verify")
    assert set(yard.guests()) == {123}
    client = bucket.client()
    body = json.loads(client.get_object(Bucket=bucket.name, Key=bucket.key)["Body"].read())
    assert body == OBJECT
    # Another program writes, and the next plan sees it.
    grown = edited(OBJECT, **{"containers__my-container__cpu_cores": 4})
    client.put_object(Bucket=bucket.name, Key=bucket.key, Body=text_of(grown).encode())
    client.close()
    assert actions(yard.json("plan", "deployment")) == ["update"]
    history = yard.json("deployment", "history")["versions"]
    assert [one["by"] is None for one in history] == [True, False]
    yard.run("deployment", "rollback", "@1")
    assert yard.json("plan", "deployment")["has_changes"] is False
    listed = yard.json("state", "list")
    assert [state["name"] for state in listed["states"]] == ["deployment/homelab/cluster"]


def test_the_credentials_of_the_state_do_not_open_the_object(rig: Rig) -> None:
    bucket = new_bucket(require_seaweed())
    keys = {
        "AWS_ACCESS_KEY_ID": ENV["S3_ACCESS_KEY_ID"],
        "AWS_SECRET_ACCESS_KEY": ENV["S3_SECRET_ACCESS_KEY"],
    }
    chosen = {"STACKYARD_DEPLOYMENT": bucket.address}
    (rig.yard.folder / "d.json").write_text(text_of(OBJECT))
    put = ("deployment", "put", "d.json")
    for env in ({**chosen, **keys}, {**chosen, **keys, **ENV}):
        error = rig.yard.with_env(**env).json(*put, status=65)["error"]
        assert error["code"] == "E-DEPLOYMENT-CREDENTIALS"
    told = {**chosen, **keys, "STACKYARD_DEPLOYMENT_SAME_CREDENTIALS": "1"}
    rig.yard.with_env(**told).run(*put)


def test_writing_uses_credentials_that_reading_does_not_have(rig: Rig) -> None:
    bucket = new_bucket(require_seaweed())
    (rig.yard.folder / "d.json").write_text(text_of(OBJECT))
    wrong = {"S3_WRITE_ACCESS_KEY_ID": "nobody", "S3_WRITE_SECRET_ACCESS_KEY": "wrong"}
    yard = rig.yard.with_env(STACKYARD_DEPLOYMENT=bucket.address, **ENV)
    # Those for writing are looked at under the lease alone, and the write fails with them.
    yard.with_env(**wrong).run("deployment", "put", "d.json", status=69)
    yard.run("deployment", "put", "d.json")
    yard.with_env(**wrong).run("deployment", "get")
    assert yard.json("deployment", "lease", "status") == {"is_held": False}


def test_committed_domain_files_are_joined_and_a_domain_in_two_files_is_refused(rig: Rig) -> None:
    yard = rig.yard
    folder = yard.folder / "deployment"
    folder.mkdir()
    (yard.folder / "deployment.yaml").write_text("domains: deployment\n")
    for key, value in OBJECT.items():
        if not key.startswith("_"):
            (folder / f"{key}.json").write_text(json.dumps({"_comment": "one domain a file", key: value}))
    yard.run("apply", "deployment", "--no-verify")
    assert set(yard.guests()) == {123}
    assert yard.json("deployment", "validate")["counts"]["containers"] == 1
    assert "commit" in rig.error("deployment", "edit", "--set", "domain=x", status=64)["detail"]
    assert "no versions" in rig.error("deployment", "history", status=64)["detail"]
    (folder / "zz.json").write_text(json.dumps({"containers": {"x": CONTAINER}}))
    error = rig.error("plan", "deployment", status=65)
    assert error["code"] == "E-DEPLOYMENT-DOMAIN"
    assert "containers.json" in error["detail"]
    (folder / "zz.json").write_text("")
    assert rig.error("plan", "deployment", status=65)["code"] == "E-DEPLOYMENT-EMPTY"


def test_encrypted_values_are_merged_under_the_object_and_never_stored_or_shown(rig: Rig) -> None:
    yard = rig.yard
    secret = "correct-horse-battery"
    (yard.folder / "deployment.yaml").write_text("secrets: deployment.sops.json\n")
    values = {"containers": {"my-container": {"user_account": {"password": secret}, "cpu_cores": 16}}}
    recipient, _ = user_recipient(Keyring())
    path = yard.folder / "deployment.sops.json"
    create_sops_file(path, json.dumps(values).encode(), (recipient,), mode=0o644)
    rig.plant(OBJECT)
    shown = yard.run("plan", "deployment", "--json").stdout
    explained = yard.run("deployment", "explain", "my-container").stdout
    yard.run("apply", "deployment", "--no-verify")
    assert yard.guests()[123]["config"]["cores"] == 2  # The object wins.
    assert secret not in shown + explained
    assert "(secret)" in explained
    kept = [p for p in (yard.folder / ".stackyard").rglob("*") if p.is_file()]
    tofu_state = [p for p in kept if "state" in p.parts]
    assert not any(secret.encode() in p.read_bytes() for p in kept if p not in tofu_state)
    path.write_text(json.dumps(values))
    assert rig.error("plan", "deployment", status=65)["code"] == "E-DEPLOYMENT-LAYER"


def test_a_schema_of_ones_own_beside_the_object_is_asked_too(rig: Rig) -> None:
    rig.plant(OBJECT)
    (rig.yard.folder / "deployment.schema.json").write_text(json.dumps({"required": ["domain"]}))
    error = rig.error("plan", "deployment", status=65)
    assert [found["code"] for found in error["diagnostics"]] == ["E-DEPLOYMENT-OWN-SCHEMA"]


def test_an_object_of_another_environment_never_meets_the_state_of_this_one(rig: Rig) -> None:
    rig.plant(edited(OBJECT, environment="develop"))
    error = rig.error("plan", "deployment", status=65)
    assert [found["code"] for found in error["diagnostics"]] == ["E-DEPLOYMENT-ENVIRONMENT"]
    (rig.yard.folder / "deployment.yaml").write_text("environment: develop\n")
    assert rig.yard.json("plan", "deployment")["state"] == "deployment/develop/cluster"


def test_the_editor_gets_the_text_and_no_credentials(rig: Rig, tmp_path: Path) -> None:
    rig.plant(OBJECT)
    seen = tmp_path / "seen"
    editor = tmp_path / "editor"
    editor.write_text(
        f'#!/bin/sh\nenv > {seen}\nsed -i \'s/"cpu_cores": 2/"cpu_cores": 3/\' "$1"\n',
    )
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    yard = rig.yard.with_env(EDITOR=str(editor), S3_SECRET_ACCESS_KEY="hush", PROXMOX_VE_API_TOKEN="hush")
    done = yard.json("deployment", "edit", "--note", "by hand")
    assert done["version"]["id"] == "2"
    assert rig.current()["containers"]["my-container"]["cpu_cores"] == 3
    assert "hush" not in seen.read_text()
    editor.write_text('#!/bin/sh\necho "{" > "$1"\n')
    assert yard.json("deployment", "edit", status=65)["error"]["code"] == "E-DEPLOYMENT-SYNTAX"
    with_failure = rig.yard.with_env(EDITOR="false")
    assert with_failure.json("deployment", "edit", status=1)["error"]["code"] == "E-DEPLOYMENT-EDITOR"
    assert rig.versions() == 2


def test_a_dry_run_and_an_edit_that_changes_nothing_write_nothing(rig: Rig) -> None:
    rig.plant(OBJECT)
    change = ("deployment", "edit", "--set", "containers.my-container.cpu_cores=4")
    shown = rig.yard.json(*change, "--dry-run")
    assert shown["version"] is None
    assert shown["difference"]["changes"][0]["fields"] == [{"field": "cpu_cores", "before": 2, "after": 4}]
    assert rig.yard.json("deployment", "rollback", "@0")["version"] is None
    assert rig.versions() == 1
    patch = rig.yard.folder / "patch.json"
    patch.write_text(json.dumps({"containers": {"my-container": {"cpu_cores": 4}}}))
    rig.yard.run("deployment", "edit", "--patch", "patch.json")
    assert rig.current()["containers"]["my-container"]["cpu_cores"] == 4
    assert rig.yard.json("deployment", "diff")["changes"][0]["key"] == "my-container"
    shown = rig.yard.json("deployment", "show", "1")
    assert shown["object"]["containers"]["my-container"]["cpu_cores"] == 2


def test_nothing_says_how_to_reach_the_cluster(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text(text_of(OBJECT))
    put = stackyard("deployment", "put", "d.json", cwd=tmp_path)
    assert put.status == 0, put.stderr
    ended = stackyard("plan", "deployment", cwd=tmp_path)
    assert ended.status == 65
    assert "PROXMOX_VE_ENDPOINT" in ended.stderr
    assert os.environ["HOME"] not in ended.stdout


async def relocate(rig: Rig, vm_id: int, node: str) -> None:
    """Have the manager of the cluster move a guest, and wait until it has."""
    async with lab_api(rig.yard.running) as api:
        await api.post(f"/cluster/ha/resources/ct:{vm_id}/relocate", {"node": node})
        while rig.yard.guests()[vm_id]["node"] != node:
            await api.pause(0.05)


def test_guests_under_high_availability_are_kept_apart_and_left_where_the_cluster_moves_them(
    rig: Rig,
) -> None:
    yard = rig.yard
    ha = {"ha": True, "ha_affinity_group": "apart"}
    second = {**CONTAINER, "vm_id": 124, "hostname": "second", "node_name": "pve2", **ha}
    changes: dict[str, Any] = {f"containers__my-container__{name}": value for name, value in ha.items()}
    rig.plant(edited(OBJECT, **changes, containers__second=second, nodes__pve2={"role": "second"}))
    yard.run("apply", "deployment", "--no-verify")
    assert lab_table(yard.running, RULES)["apart"]["resources"] == "ct:123,ct:124"
    managed = lab_table(yard.running, RESOURCES)
    assert {sid: (one["max_restart"], one["max_relocate"]) for sid, one in managed.items()} == {
        "ct:123": (3, 1),
        "ct:124": (3, 1),
    }
    yard.run("deployment", "edit", "--set", "containers.second.ha=false")
    yard.run("apply", "deployment", "--no-verify")
    assert (set(lab_table(yard.running, RESOURCES)), lab_table(yard.running, RULES)) == ({"ct:123"}, {})
    assert set(yard.guests()) == {123, 124}

    asyncio.run(relocate(rig, 123, "pve2"))
    planned = yard.json("plan", "deployment")
    assert planned["has_changes"] is False
    assert [found["code"] for found in planned["guard"]["warnings"]] == ["W-GUARD-ELSEWHERE"]
    assert "`ha-manager relocate ct:123 pve1`" in planned["guard"]["warnings"][0]["detail"]
    yard.run("deployment", "edit", "--set", "containers.my-container.memory_dedicated=1024")
    yard.run("apply", "deployment", "--no-verify")
    there = yard.guests()[123]
    assert (there["node"], there["config"]["memory"]) == ("pve2", 1024)
