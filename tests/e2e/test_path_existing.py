"""Guests that exist: they are never taken for gone, never replaced over a number or a node, never shared."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.engine import real_engine
from tests.support.judges import find_judge
from tests.support.lab import proxmoxer_client
from tests.support.path import Yard, make_yard, mirror_of
from tests.support.site_store import pending

from stackyard import lab
from stackyard.clients.objects import open_objects
from stackyard.engine.version import Flavour
from stackyard.state import StateService
from stackyard.state.model import Actor

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

DNS: dict[str, Any] = {
    "name": "dns",
    "type": "ct",
    "image": "debian-13-ct",
    "cores": 1,
    "memory": 512,
    "disk": 4,
}
PLAIN: dict[str, Any] = {"disks": [{"interface": "scsi0", "size_gib": 1}], "memory": 256, "cores": 1}


def vm(name: str, **fields: Any) -> dict[str, Any]:
    """A virtual machine that needs no file and is not started: quick to make."""
    return {"name": name, **PLAIN, "started": False, **fields}


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    engine = real_engine(Flavour.TOFU)
    with lab.running(nodes=("pve1", "pve2"), ssh_port=0) as running:
        yield make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(engine.path))


def state_of(yard: Yard, name: str) -> dict[str, Any]:
    """The resources of a state by address, and its serial."""
    objects = open_objects(yard.folder / ".stackyard" / "state")
    try:
        content = StateService(objects).contents.read(name)
        assert content is not None
        document = json.loads(content.body.data)
        rows = {f"{row['type']}.{row['name']}": row["instances"][0] for row in document["resources"]}
        return {"serial": document["serial"], "rows": rows}
    finally:
        objects.close()


def actions(document: dict[str, Any]) -> dict[str, str]:
    return {change["subject"]: change["action"] for change in document["changes"]}


def hide(yard: Yard, *visible: int) -> None:
    """Let the site use a token that may see some guests alone."""
    api = proxmoxer_client(yard.running)
    api.access.users.post(userid="small@pve")
    made = api.access.users("small@pve").token("ci").post(privsep=0)
    for vm_id in visible:
        api.access.acl.put(path=f"/vms/{vm_id}", users="small@pve", roles="PVEVMAdmin")
    for path in ("/storage/local", "/storage/local-lvm", "/nodes/pve1", "/nodes/pve2"):
        api.access.acl.put(path=path, users="small@pve", roles="Administrator")
    token = f"small@pve!ci={made['value']}"
    (yard.folder / "secrets.yaml").write_text(f"api_tokens:\n  lab: {token}\n")


def test_a_guest_that_the_token_cannot_see_is_unknown_and_never_gone(yard: Yard) -> None:
    yard.write_env("t", [vm("a", vmid=500), vm("b", vmid=501), {**DNS, "vmid": 502, "started": False}])
    yard.run("apply", "t", "--no-verify")
    before = state_of(yard, "env/t/lab")
    secrets = (yard.folder / "secrets.yaml").read_bytes()
    hide(yard, 500)
    for command in ("plan", "apply", "drift", "destroy"):
        error = yard.json(command, "t", status=1)["error"]
        assert error["code"] == "E-PLAN-NOT-VISIBLE", error
        said = " ".join(found["detail"] for found in error["diagnostics"])
        assert "VM b (501 on pve1)" in said
        assert "container dns (502 on pve1)" in said
        assert "VM.Audit on /vms/501" in said
        assert "VM a " not in said
    assert state_of(yard, "env/t/lab") == before
    assert pending(yard.folder / ".stackyard") == []
    (yard.folder / "secrets.yaml").write_bytes(secrets)
    assert yard.json("plan", "t")["has_changes"] is False


@pytest.mark.bpg
def test_the_real_provider_forgets_nothing_that_is_hidden_or_moved(yard: Yard, tmp_path: Path) -> None:
    config = mirror_of(find_judge("bpg"), Path(yard.env["STACKYARD_TOFU"]), tmp_path)
    bpg = yard.with_env(STACKYARD_PROVIDER="bpg", STACKYARD_TOFU_CONFIG=str(config))
    yard.write_env("t", [vm("a", vmid=500), {**DNS, "vmid": 501, "started": False}])
    yard.run("apply", "t", "--no-verify")
    api = proxmoxer_client(yard.running)
    wait(api, api.nodes("pve1").lxc("501").migrate.post(target="pve2"))
    planned = bpg.json("plan", "t")
    assert actions(planned) == {}
    assert [found["code"] for found in planned["guard"]["warnings"]] == ["W-GUARD-ELSEWHERE"]
    bpg.run("apply", "t", "--no-verify")
    assert set(yard.guests()) == {500, 501}
    before = state_of(yard, "env/t/lab")
    hide(yard, 500)
    assert bpg.json("plan", "t", status=1)["error"]["code"] == "E-PLAN-NOT-VISIBLE"
    assert state_of(yard, "env/t/lab") == before


def test_a_node_that_does_not_answer_is_no_answer(yard: Yard) -> None:
    yard.write_env("t", [vm("a", vmid=500)])
    yard.run("apply", "t", "--no-verify")
    api = proxmoxer_client(yard.running)
    wait(api, api.nodes("pve1").qemu("500").delete())
    # Certainly gone: both nodes say so, to a token that may look.
    assert actions(yard.json("plan", "t")) == {"VM a (500 on pve1)": "create"}
    yard.running.add_fault("node-down", node="pve2")
    error = yard.json("plan", "t", status=1)["error"]
    assert [found["code"] for found in error["diagnostics"]] == ["E-PLAN-NODE-SILENT"]
    assert "pve2" in error["diagnostics"][0]["detail"]


def test_removing_one_guest_leaves_the_ids_of_its_neighbours(yard: Yard) -> None:
    yard.write_env("t", [vm("db"), vm("web"), vm("mail")], vmid_base=700)
    yard.run("apply", "t", "--no-verify")
    assert {key: guest["config"]["name"] for key, guest in yard.guests().items()} == {
        700: "db",
        701: "web",
        702: "mail",
    }
    yard.write_env("t", [vm("web"), vm("mail"), vm("new")], vmid_base=700)
    error = yard.json("apply", "t", "--no-verify", status=1)["error"]
    assert [found["detail"].partition(" would")[0] for found in error["diagnostics"]] == [
        "VM db (700 on pve1)"
    ]
    yard.run("apply", "t", "--no-verify", "--allow-destroy", "db")
    # The id that is counted for `new`, 702, is the one of mail: it gets the next.
    assert {key: guest["config"]["name"] for key, guest in yard.guests().items()} == {
        701: "web",
        702: "mail",
        703: "new",
    }
    assert yard.json("plan", "t")["has_changes"] is False


def test_a_guest_that_was_moved_stays_where_it_is_until_that_is_permitted(yard: Yard) -> None:
    yard.write_env("t", [vm("a", vmid=500), {**DNS, "vmid": 501, "started": False}])
    yard.run("apply", "t", "--no-verify")
    api = proxmoxer_client(yard.running)
    for kind in (api.nodes("pve1").qemu("500"), api.nodes("pve1").lxc("501")):
        upid = kind.migrate.post(target="pve2")
        wait(api, upid)
    planned = yard.json("plan", "t")
    assert actions(planned) == {}
    assert [found["code"] for found in planned["guard"]["warnings"]] == ["W-GUARD-ELSEWHERE"] * 2
    yard.run("apply", "t", "--no-verify")
    assert {key: guest["node"] for key, guest in yard.guests().items()} == {500: "pve2", 501: "pve2"}
    token = yard.guests()[501]["config"].get("rootfs")
    yard.run("apply", "t", "--no-verify", "--allow-migrate", "a,dns")
    assert {key: guest["node"] for key, guest in yard.guests().items()} == {500: "pve1", 501: "pve1"}
    assert yard.guests()[501]["config"].get("rootfs") == token
    assert yard.json("plan", "t")["has_changes"] is False


def wait(api: Any, upid: str) -> None:
    node = upid.split(":")[1]
    for _ in range(200):
        if api.nodes(node).tasks(upid).status.get()["status"] == "stopped":
            assert api.nodes(node).tasks(upid).status.get()["exitstatus"] == "OK"
            return
    raise AssertionError(upid)


def test_what_is_refused_has_changed_nothing_in_the_state(yard: Yard) -> None:
    yard.write_env("t", [vm("web", vmid=500), vm("db", vmid=501)])
    yard.run("apply", "t", "--no-verify")
    before = state_of(yard, "env/t/lab")
    # One is renamed, one would go: the refusal of the second must not leave the first half done.
    yard.write_env("t", [vm("www", vmid=500), vm("new", vmid=502)])
    assert yard.codes("apply", "t", "--accept-renames", "--no-verify") == ["E-GUARD-DESTROYS-GUEST"]
    assert state_of(yard, "env/t/lab") == before
    planned = yard.json("plan", "t", "--accept-renames", status=3)
    assert actions(planned)["VM web (500 on pve1)"] == "update"
    yard.write_env("t", [vm("www", vmid=500), vm("db", vmid=501)])
    yard.run("plan", "t", "--accept-renames", "--out", "x.plan")
    assert state_of(yard, "env/t/lab") == before
    yard.run("apply", "t", "--plan", "x.plan", "--no-verify")
    assert yard.guests()[500]["config"]["name"] == "www"
    assert yard.json("plan", "t")["has_changes"] is False


def test_a_guest_is_adopted_by_the_plan_itself(yard: Yard) -> None:
    yard.write_env("t", [vm("web", vmid=500), vm("db", vmid=501)])
    yard.run("apply", "t", "--no-verify")
    (yard.folder / ".stackyard" / "state" / "objects.sqlite").unlink()
    # Refused for another reason: nothing was taken over yet.
    yard.write_env("t", [vm("web", vmid=500), vm("db", vmid=501, bridge="vmbr9")])
    assert yard.codes("apply", "t", "--adopt", "--no-verify") == ["E-GUARD-NO-SUCH-BRIDGE"]
    yard.write_env("t", [vm("web", vmid=500), vm("db", vmid=501)])
    assert yard.codes("apply", "t", "--no-verify") == ["E-GUARD-UNMANAGED-GUEST"] * 2
    yard.run("apply", "t", "--adopt", "--no-verify")
    assert set(state_of(yard, "env/t/lab")["rows"]) >= {
        "proxmox_virtual_environment_vm.web",
        "proxmox_virtual_environment_vm.db",
    }
    assert yard.json("plan", "t")["has_changes"] is False


def add_host(yard: Yard, name: str, node: str) -> None:
    """Give the site a second host: another node of the same cluster."""
    first = yaml.safe_load((yard.folder / "nodes" / "lab.yaml").read_text())
    (yard.folder / "nodes" / f"{name}.yaml").write_text(yaml.safe_dump({**first, "node": node}))
    token = yard.running.api_token
    text = yaml.safe_dump({"api_tokens": {"lab": token, name: token}})
    (yard.folder / "secrets.yaml").write_text(text)


def test_one_env_on_two_hosts_of_a_cluster_does_not_take_its_own_guests_over(yard: Yard) -> None:
    add_host(yard, "other", "pve2")
    yard.write_env("t", [vm("web", vmid=500)], node=None)
    yard.run("apply", "t", "-H", "lab", "--no-verify")
    for adopt in ((), ("--adopt",)):
        error = yard.json("apply", "t", "-H", "other", "--no-verify", *adopt, status=1)["error"]
        assert [found["code"] for found in error["diagnostics"]] == ["E-GUARD-MANAGED-ELSEWHERE"]
        assert "env/t/lab" in error["diagnostics"][0]["detail"]
        assert "--adopt" not in error["remedy"]
    assert set(yard.guests()) == {500}


def copy_state(yard: Yard, source: str, target: str) -> None:
    """Let two states have the same resources, as two hands that each imported a guest would."""
    objects = open_objects(yard.folder / ".stackyard" / "state")
    try:
        states = StateService(objects)
        content = states.contents.read(source)
        assert content is not None
        actor = Actor(principal="test")
        states.locks.lock(target, b'{"ID": "ours", "Operation": "push", "Who": "me"}', actor)
        states.contents.write(target, content.body.data, actor, lock_id="ours")
        states.locks.unlock(target, "ours", actor)
    finally:
        objects.close()


def test_a_guest_in_two_states_is_destroyed_by_neither_until_one_lets_it_go(yard: Yard) -> None:
    add_host(yard, "other", "pve2")
    yard.write_env("t", [vm("web", vmid=500)], node=None)
    yard.run("apply", "t", "-H", "lab", "--no-verify")
    copy_state(yard, "env/t/lab", "env/t/other")
    error = yard.json("destroy", "t", "-H", "other", "--allow-destroy", "web", status=1)["error"]
    assert [found["code"] for found in error["diagnostics"]] == ["E-GUARD-IN-TWO-STATES"]
    assert "--allow-destroy" not in error["remedy"]
    assert set(yard.guests()) == {500}
    yard.run("state", "forget", "env/t/other", "proxmox_virtual_environment_vm.web")
    assert set(yard.guests()) == {500}
    yard.run("destroy", "t", "-H", "lab", "--allow-destroy", "web")
    assert yard.guests() == {}


def test_a_target_whose_file_is_gone_is_named_and_can_be_destroyed(yard: Yard) -> None:
    yard.write_env("t", [vm("web", vmid=500)])
    yard.run("apply", "t", "--no-verify")
    (yard.folder / "envs" / "t.yaml").unlink()
    warnings = yard.json("site", "validate")["warnings"]
    found = [one for one in warnings if one["code"] == "W-SITE-STATE-WITHOUT-INPUT"]
    assert [("env/t/lab" in one["detail"], "env:t" in one["detail"]) for one in found] == [(True, True)]
    assert yard.json("output", "t")["guests"]["web"]["vm_id"] == 500
    # A plan needs the input.
    assert yard.json("plan", "t", status=64)["error"]["code"] == "E-USAGE"
    assert yard.codes("destroy", "t") == ["E-GUARD-DESTROYS-GUEST"]
    yard.run("destroy", "t", "--allow-destroy", "web")
    assert yard.guests() == {}
    assert [one["code"] for one in yard.json("site", "validate")["warnings"]].count(found[0]["code"]) == 0


def test_a_state_that_could_not_be_stored_is_stored_by_the_next_run(yard: Yard) -> None:
    yard.write_env("t", [vm("web", vmid=500)])
    yard.run("apply", "t", "--no-verify")
    state = yard.folder / ".stackyard" / "state"
    objects = open_objects(state)
    content = StateService(objects).contents.read("env/t/lab")
    objects.close()
    assert content is not None
    work = yard.folder / ".stackyard" / "work" / "env--t--lab"
    document = json.loads(content.body.data)
    (work / "errored.tfstate").write_text(json.dumps({**document, "serial": document["serial"] + 1}))
    ended = yard.run("plan", "t")
    assert "is stored now" in ended.stderr
    assert not (work / "errored.tfstate").exists()
    assert state_of(yard, "env/t/lab")["serial"] > document["serial"]

    # Another run has stored something since: nobody decides that but a person.
    (work / "errored.tfstate").write_text(json.dumps({**document, "resources": []}))
    error = yard.json("apply", "t", status=1)["error"]
    assert error["code"] == "E-STATE-ERRORED"
    assert "stackyard state recover env/t/lab" in error["remedy"]
    shown = yard.json("state", "recover", "env/t/lab")
    assert [one["change"] for one in shown["difference"]["resources"]] == ["removed"]
    assert (work / "errored.tfstate").exists()
    yard.run("state", "recover", "env/t/lab", "--use", "store")
    assert yard.json("plan", "t")["has_changes"] is False
    (work / "errored.tfstate").write_text(json.dumps({**document, "serial": 1}))
    yard.run("state", "recover", "env/t/lab", "--use", "file")
    assert yard.json("plan", "t")["has_changes"] is False


def test_a_run_that_waited_applies_the_input_as_it_is_then(yard: Yard) -> None:
    yard.write_env("t", [vm("web", vmid=500)])
    yard.run("apply", "t", "--no-verify")
    objects = open_objects(yard.folder / ".stackyard" / "state")
    states, actor = StateService(objects), Actor(principal="test")
    states.locks.lock("env/t/lab", b'{"ID": "ours", "Operation": "apply", "Who": "me"}', actor)
    yard.write_env("t", [vm("web", vmid=500, memory=300)])
    ended: list[Any] = []
    waiting = threading.Thread(
        target=lambda: ended.append(yard.run("apply", "t", "--no-verify", "--lock-wait", "120", "--events"))
    )
    waiting.start()
    try:
        wait_until_waited(states, "env/t/lab")
        yard.write_env("t", [vm("web", vmid=500, memory=400)])
        states.locks.unlock("env/t/lab", "ours", actor)
        waiting.join()
    finally:
        objects.close()
    assert ended
    assert yard.guests()[500]["config"]["memory"] in (400, "400")


def wait_until_waited(states: StateService, name: str) -> None:
    while not states.head(name).waiting:
        threading.Event().wait(0.02)


def test_an_entry_of_the_journal_hides_no_guest_of_somebody_else(yard: Yard) -> None:
    """Entries of refused creates, as older versions left them, do not keep the guard quiet."""
    yard.write_env("t", [vm("web", vmid=500)])
    yard.run("apply", "t", "--no-verify")
    wait(proxmoxer_client(yard.running), proxmoxer_client(yard.running).nodes("pve1").qemu("500").delete())
    proxmoxer_client(yard.running).nodes("pve1").qemu.post(vmid=500, name="theirs")
    (yard.folder / ".stackyard" / "state" / "objects.sqlite").unlink()
    entry = {
        "token": "5f0c6d1e-0000-4000-8000-000000000000",
        "state": "env/t/lab",
        "subject": {"type_name": "proxmox_virtual_environment_vm", "name": "web", "key": "id 500"},
        "node": "pve1",
        "vm_id": 500,
        "upid": "",
    }
    journal = yard.folder / ".stackyard" / "journal"
    journal.mkdir()
    (journal / f"{entry['token']}.json").write_text(json.dumps(entry))
    assert yard.codes("apply", "t", "--no-verify") == ["E-GUARD-UNMANAGED-GUEST"]
    assert yard.guests()[500]["config"]["name"] == "theirs"
