"""Guests that nobody here made: imported into a site, so that the plan that follows is empty."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.engine import real_engine
from tests.support.forking import fork_program
from tests.support.import_seed import INEXPRESSIBLE, SEED, VM_IDS, with_calls
from tests.support.judges import find_judge
from tests.support.path import Yard, lasting_home, make_yard, mirror_of
from tests.support.path_kills import children_of

from stackyard import lab
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(600)]

OLD = """\
# Guests of the house; ask Anna before you change one.
node: lab  # the only one at the time

vms:
  # Not made yet.
  - {name: later, vmid: 500, preset: vm-xsmall, image: debian-12}
"""


FIREWALL = {
    "options": {"dhcp": False, "output_policy": "REJECT", "log_level_in": "info"},
    "rules": [
        {"type": "in", "action": "ACCEPT", "dport": "80,443", "proto": "tcp", "log": "err"},
        {"type": "in", "action": "ACCEPT", "macro": "SSH", "source": "guest/Office"},
        {"type": "in", "action": "DROP", "source": "+guest/peers", "enabled": False},
    ],
    "aliases": {"Office": {"cidr": "192.0.2.0/24", "comment": "the office"}},
    "ipsets": {
        "peers": {
            "entries": [
                {"name": "10.1.0.0/16"},
                {"name": "10.1.2.0/24", "nomatch": True, "comment": "not these"},
            ],
            "comment": "who talks",
        }
    },
}
COPIES = [{"target": "pve1", "schedule": "daily", "rate": 10, "number": 1}]


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    with lab.running(nodes=("pve1", "pve2"), ssh_port=0, seed=SEED) as running:
        yield make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(real_engine(Flavour.TOFU).path))


@pytest.fixture(scope="module")
def imported_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """Give a site with two guests imported: to copy, because an import changes nothing in the lab."""
    folder = tmp_path_factory.mktemp("imported")
    engine = str(real_engine(Flavour.TOFU).path)
    with (
        lasting_home(folder) as env,
        lab.running(nodes=("pve1", "pve2"), ssh_port=0, seed=SEED) as running,
    ):
        made = make_yard(running, folder / "site", STACKYARD_TOFU=engine, **env)
        made.run("import", "env:home", "-H", "lab", "--filter", "web,nas")
        yield made


@pytest.fixture
def begun(imported_once: Yard, tmp_path: Path) -> Yard:
    """Give a site of this test's own in which `env:home` has web and nas."""
    return replace(imported_once, folder=shutil.copytree(imported_once.folder, tmp_path / "site"))


def env_file(yard: Yard, name: str = "home") -> Path:
    return yard.folder / "envs" / f"{name}.yaml"


def imported(document: dict[str, Any]) -> set[int]:
    return {guest["vm_id"] for guest in document["imported"]}


def edit(yard: Yard, name: str, guest: str, **fields: Any) -> None:
    """Change the entry of a guest as its user would."""
    document = yaml.safe_load(env_file(yard, name).read_text())
    entry = next(entry for entry in document["vms"] if entry["name"] == guest)
    entry.update(fields)
    env_file(yard, name).write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))


def test_a_cluster_made_by_hand_becomes_an_env_whose_plan_is_empty(yard: Yard) -> None:
    before = yard.guests()
    done = yard.json("import", "env:home", "-H", "lab")
    assert imported(done) == VM_IDS
    assert yard.guests() == before
    planned = yard.json("plan", "home", "--detailed-exitcode")
    assert (planned["has_changes"], planned["guard"]["refused"]) == (False, [])
    assert {guest["vm_id"] for guest in yard.json("output", "home")["guests"].values()} == VM_IDS
    assert yard.json("drift", "home")["unmanaged"] == []
    entries = {entry["name"]: entry for entry in yaml.safe_load(env_file(yard).read_text())["vms"]}
    assert (entries["web"]["firewall"], entries["batch"]["replication"]) == (FIREWALL, COPIES)
    again = yard.json("import", "env:home", "-H", "lab")
    assert (again["imported"], again["file"], len(again["managed"])) == ([], None, len(VM_IDS))

    edit(yard, "home", "web", memory=4096)
    edit(yard, "home", "docker", cores=6)
    edit(yard, "home", "dns", firewall={"rules": [{"type": "in", "action": "DROP", "macro": "DNS"}]})
    changes = yard.json("plan", "home", status=3)["changes"]
    assert {change["subject"]: [d["attribute"] for d in change["differences"]] for change in changes} == {
        "VM web (100 on pve1)": ["memory[0].dedicated"],
        "container docker (201 on pve2)": ["cpu[0].cores"],
        "firewall options 200/options": ["enabled"],
        "firewall rules 200/rules": ["rule[0].action", "rule[0].comment", "rule[0].enabled", "rule[0].iface"],
    }
    yard.run("apply", "home", "--no-verify", "--allow-reboot", "web")
    assert yard.guests()[100]["config"]["memory"] == 4096 or yard.guests()[100]["config"]["memory"] == "4096"
    assert {vm_id: guest for vm_id, guest in yard.guests().items() if vm_id not in (100, 201)} == {
        vm_id: guest for vm_id, guest in before.items() if vm_id not in (100, 201)
    }

    document = yaml.safe_load(env_file(yard).read_text())
    document["vms"] = [entry for entry in document["vms"] if entry["name"] not in ("bare", "dns")]
    env_file(yard).write_text(yaml.safe_dump(document))
    error = yard.json("apply", "home", status=1)["error"]
    assert [found["code"] for found in error["diagnostics"]] == ["E-GUARD-DESTROYS-GUEST"] * 2
    assert set(yard.guests()) == VM_IDS


@pytest.mark.soak
def test_another_homelab_imports_as_it_stands(tmp_path: Path) -> None:
    with lab.running(ssh_port=0, seed=lab.load_seed("homelab")) as running:
        yard = make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(real_engine(Flavour.TOFU).path))
        before = yard.guests()
        assert imported(yard.json("import", "env:home", "-H", "lab")) == before.keys()
        assert yard.json("plan", "home", "--detailed-exitcode")["has_changes"] is False
        assert yard.guests() == before


def test_the_users_own_words_in_the_file_stay(yard: Yard) -> None:
    env_file(yard, "house").write_text(OLD)
    yard.run("import", "house", "--filter", "type=ct", "--node", "pve1", "--filter", "dns,zigbee")
    text = env_file(yard, "house").read_text()
    assert text.startswith(OLD)
    assert [entry["name"] for entry in yaml.safe_load(text)["vms"]] == ["later", "dns", "zigbee"]
    changes = yard.json("plan", "house")["changes"]
    assert {change["action"] for change in changes} == {"create"}
    assert [change["subject"] for change in changes if "500" in change["subject"]] == [
        "VM later (500 on pve1)"
    ]
    assert not any("dns" in change["subject"] for change in changes)


def test_a_trial_writes_nothing(yard: Yard) -> None:
    done = yard.run("import", "env:home", "-H", "lab", "--filter", "web", "--dry-run")
    assert "+  - name: web" in done.stdout
    assert "Would import 1 guest" in done.stdout
    assert not env_file(yard).exists()
    assert yard.json("state", "list")["states"] == []


def test_what_cannot_be_expressed_is_named_at_once_and_nothing_is_written(tmp_path: Path) -> None:
    seed = with_calls(*INEXPRESSIBLE)
    with lab.running(nodes=("pve1", "pve2"), ssh_port=0, seed=seed) as running:
        yard = make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(real_engine(Flavour.TOFU).path))
        error = yard.json("import", "env:home", "-H", "lab", status=65)["error"]
        found = [diagnostic["detail"].rpartition(": ")[0] for diagnostic in error["diagnostics"]]
        assert found == [
            "sound (300 on pve1): `localtime`",
            "sound (300 on pve1): `parallel0`",
            "clock (301 on pve1): `timezone`",
        ]
        assert not env_file(yard).exists()
        assert yard.json("state", "list")["states"] == []
        # What no provider looks at can be left to Proxmox, by name.
        leave = ("--leave", "localtime,parallel0", "--leave", "timezone")
        yard.run("import", "env:home", "-H", "lab", "--filter", "sound,clock", *leave)
        assert yard.json("plan", "home", "--detailed-exitcode")["has_changes"] is False


def test_a_guest_of_another_state_is_refused_by_the_name_of_that_state(begun: Yard) -> None:
    yard = begun
    error = yard.json("import", "env:other", "-H", "lab-pve2", "--filter", "web,dns", status=65)["error"]
    assert [found["code"] for found in error["diagnostics"]] == ["E-IMPORT-MANAGED"]
    assert "web (100 on pve1) is in the state env/home/lab" in error["diagnostics"][0]["detail"]
    assert not env_file(yard, "other").exists()
    # Whoever asks for everything gets what is left.
    rest = yard.json("import", "env:other", "-H", "lab-pve2")
    assert imported(rest) == VM_IDS - {100, 101}
    assert {one["vm_id"]: one["state"] for one in rest["managed"]} == {
        100: "env/home/lab",
        101: "env/home/lab",
    }
    assert yard.json("plan", "other", "--detailed-exitcode")["has_changes"] is False


def test_a_filter_that_means_nobody_is_said(yard: Yard) -> None:
    arguments = ("--filter", "web,wbe", "--filter", "900-999,tag=none", "--node", "pve1")
    error = yard.json("import", "env:home", "-H", "lab", *arguments, status=65)["error"]
    assert [found["detail"] for found in error["diagnostics"]] == [
        "No guest of the cluster is meant by `wbe`.",
        "No guest of the cluster is meant by `900-999`.",
        "No guest of the cluster is meant by `tag=none`.",
    ]


@pytest.mark.soak
def test_an_import_that_was_cut_off_after_the_file_goes_on(yard: Yard) -> None:
    yard.run("import", "env:home", "-H", "lab", "--filter", "web,docker")
    written = env_file(yard).read_text()
    before = yard.guests()
    (yard.folder / ".stackyard" / "state" / "objects.sqlite").unlink()
    error = yard.json("apply", "home", status=1)["error"]
    assert "one that is there already is imported" in error["diagnostics"][0]["detail"]
    yard.run("import", "env:home", "-H", "lab", "--filter", "web,docker")
    assert yard.guests() == before
    assert env_file(yard).read_text() == written
    assert yard.json("plan", "home", "--detailed-exitcode")["has_changes"] is False


def test_a_file_that_says_something_else_by_now_is_refused_with_the_differences(begun: Yard) -> None:
    yard = begun
    (yard.folder / ".stackyard" / "state" / "objects.sqlite").unlink()
    edit(yard, "home", "web", cores=3)
    written = env_file(yard).read_text()
    error = yard.json("import", "env:home", "-H", "lab", "--filter", "web,nas", status=1)["error"]
    assert error["code"] == "E-IMPORT-NOT-EMPTY"
    assert [found["detail"] for found in error["diagnostics"]] == [
        "VM web (100 on pve1): `cpu[0].cores` is 2 and would become 3."
    ]
    assert env_file(yard).read_text() == written
    assert set(yard.codes("apply", "home")) == {"E-GUARD-UNMANAGED-GUEST", "E-GUARD-UNMANAGED-OBJECT"}


@pytest.mark.soak
def test_a_state_that_cannot_be_written_leaves_the_file_as_it_was(begun: Yard) -> None:
    yard = begun
    written = env_file(yard).read_text()
    yard.run("state", "freeze", "env/home/lab", "--reason", "an audit")
    assert yard.run("import", "home", "--filter", "dns", status=None).status != 0
    assert env_file(yard).read_text() == written
    yard.run("state", "unfreeze", "env/home/lab")
    yard.run("import", "home", "--filter", "dns")
    assert yard.json("plan", "home", "--detailed-exitcode")["has_changes"] is False
    assert yard.json("output", "home")["guests"].keys() == {"web", "nas", "dns"}


def kill_import(yard: Yard, wanted: str) -> None:
    """Import the guests with a tag, and kill everything that runs when a step begins."""
    err, err_end = os.pipe()
    with open(os.devnull, "r+b") as nothing, open(err_end, "wb"):
        program = fork_program(
            ("import", "env:home", "-H", "lab", "--filter", "tag=*"),
            streams=(nothing.fileno(), nothing.fileno(), err_end),
            cwd=yard.folder,
            env={**os.environ, **yard.env},
        )
    with open(err) as said:
        assert any(line.startswith(wanted) for line in said), wanted
        for pid in (program.pid, *children_of(program.pid, "tofu")):
            # One that has just ended is as good.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        program.wait()


@pytest.mark.parametrize(
    "moments",
    [
        # When file and state may differ.
        pytest.param("Writing", id="once"),
        # After the survey, in the trial, and at the end.
        pytest.param("Importing Proving Writing Planning", id="everywhere", marks=pytest.mark.soak),
    ],
)
def test_whenever_it_is_killed_the_same_import_converges(yard: Yard, moments: str) -> None:
    before = yard.guests()
    for wanted in moments.split():
        kill_import(yard, wanted)
    yard.run("import", "env:home", "-H", "lab", "--filter", "tag=*", "--lock-wait", "60")
    assert yard.json("plan", "home", "--detailed-exitcode")["has_changes"] is False
    assert yard.guests() == before
    assert [entry["name"] for entry in yaml.safe_load(env_file(yard).read_text())["vms"]] == ["web", "dns"]


@pytest.mark.bpg
def test_the_real_provider_imports_the_same_and_both_agree(yard: Yard, tmp_path: Path) -> None:
    settings = mirror_of(find_judge("bpg"), Path(yard.env["STACKYARD_TOFU"]), tmp_path / "bpg")
    bpg = yard.with_env(STACKYARD_PROVIDER="bpg", STACKYARD_TOFU_CONFIG=str(settings))
    assert imported(bpg.json("import", "env:home", "-H", "lab", "--filter", "type=ct,100-109")) == VM_IDS - {
        9000
    }
    assert yard.json("plan", "home")["changes"] == []
    yard.run("import", "env:home", "-H", "lab")
    assert bpg.json("plan", "home")["changes"] == []


@pytest.mark.soak
@pytest.mark.terraform
def test_terraform_imports_too(yard: Yard) -> None:
    terraform = yard.with_env(STACKYARD_TOFU=str(real_engine(Flavour.TERRAFORM).path))
    assert imported(terraform.json("import", "env:home", "-H", "lab")) == VM_IDS
    assert terraform.json("plan", "home", "--detailed-exitcode")["has_changes"] is False
