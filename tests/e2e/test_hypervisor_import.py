"""A cluster that nobody here made: imported into `hypervisors/`, so that the plans that follow are empty."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.cluster_seed import SEED
from tests.support.engine import real_engine
from tests.support.judges import find_judge
from tests.support.kinds.certificates import FIRST
from tests.support.lab import proxmoxer_client
from tests.support.path import Yard, make_yard, mirror_of

from stackyard import lab
from stackyard.base import yamledit
from stackyard.desired import ClusterObject
from stackyard.engine.version import Flavour
from stackyard.secrets import change_secrets
from stackyard.sources.hypervisor.build import build_desired
from stackyard.sources.hypervisor.sections import CLUSTER, NODE
from stackyard.sources.site import Site

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(600)]

TARGETS = ("home", "pve1", "pve2")
# What the token of a site may not read, or no seed can make.
UNSEEN = {"acme.accounts", "zfs", "certificate"}
# In the words that an import uses, so that the two can be compared.
OURS = """\
# The cluster of the house.
storages:
  nas:  # in the cellar
    type: nfs
    server: 10.0.0.9
    export: /volume1
    content: [backup, iso]
    backups: {keep_last: 3, keep_weekly: 4}
pools:
  lab: {comment: Tests}
groups:
  ops: {comment: Operators}
roles:
  Starter: [VM.Audit, VM.PowerMgmt]
users:
  anna@pve: {groups: [ops], email: anna@example.com}
acl:
  - {path: /pool/lab, group_id: ops, role_id: Starter}
mappings:
  usb:
    stick: [{node: pve1, id: "0658:0200"}]
backups:
  nightly: {schedule: "02:00", storage: nas, pool: lab, mode: snapshot, prune_backups: {keep-last: "7"}}
sdn:
  zones:
    simple: {type: simple, ipam: pve}
  vnets:
    vnet1: {zone: simple, alias: for guests}
  subnets:
    - {vnet: vnet1, cidr: 10.5.0.0/24, gateway: 10.5.0.1}
firewall:
  aliases:
    lan: {cidr: 10.0.0.0/8, comment: the house}
  ipsets:
    admins: [10.0.0.5, {name: 10.0.0.6, nomatch: true}]
  groups:
    web: [{type: in, action: ACCEPT, macro: HTTPS}]
  rules: [{type: in, action: ACCEPT, source: +admins, proto: tcp, dport: "8006"}]
"""


@pytest.fixture
def running() -> Iterator[lab.Running]:
    with lab.running(nodes=("pve1", "pve2"), ssh_port=0, seed=SEED) as made:
        yield made


def make(running: lab.Running, folder: Path, **env: str) -> Yard:
    return make_yard(running, folder, STACKYARD_TOFU=str(real_engine(Flavour.TOFU).path), **env)


def file(yard: Yard, name: str) -> Path:
    return yard.folder / "hypervisors" / f"{name}.yaml"


def is_planned_empty(yard: Yard, *names: str) -> bool:
    return not any(yard.json("plan", f"hypervisor:{name}")["has_changes"] for name in names)


def objects_of(yard: Yard, name: str) -> dict[str, ClusterObject]:
    built = build_desired(Site.open(yard.folder).hypervisors[name].model)
    return {f"{one.key.type} {one.key.name}": one for one in built.objects}


@pytest.mark.soak
def test_a_whole_cluster_becomes_files_whose_plans_are_empty(running: lab.Running, tmp_path: Path) -> None:
    yard = make(running, tmp_path / "site")
    tried = yard.run("import", "hypervisor:pve2", "--node", "pve2", "--dry-run")
    assert "+bridges:" in tried.stdout
    assert "Would import 10 objects into hypervisor:pve2" in tried.stdout
    assert not file(yard, "pve2").exists()

    done = yard.json("import", "hypervisor:home", "--all", "-H", "lab")
    assert [one["target"] for one in done["targets"]] == [f"hypervisor:{name}" for name in TARGETS]
    imported = {row["object"]: row for one in done["targets"] for row in one["imported"]}
    sections = {section.name for section in (*CLUSTER, *NODE)}
    found = {name for name in sections for label in imported if label == name or label.startswith(f"{name}.")}
    assert found == sections - UNSEEN
    assert not {"users.root@pam", "roles.PVEAdmin", "realms.pam"} & imported.keys()
    left = {row["object"]: row["secrets"] for one in done["targets"] for row in one["left_out"]}
    assert left == {
        "storages.butter": [],
        "realms.ad": [],
        "storages.share": ["passwords.storages_share_password"],
        "storages.vault": ["passwords.storages_vault_password"],
        "acme.accounts.default": [],
        "acme.plugins.cloud": [],
        "tokens.root@pam!lab": [],
        "tokens.anna@pve!ci": [],
        "acl./vms": [],
    }
    texts = {name: file(yard, name).read_text() for name in TARGETS}
    assert "told-to-nobody" not in "".join(texts.values())
    assert is_planned_empty(yard, *TARGETS)

    # With its secret, what was left out comes along, and what the file has stays as it is.
    commented = f"# Ask Anna.\n{texts['home']}"
    file(yard, "home").write_text(commented)
    editor = tmp_path / "editor.sh"
    secret = "passwords:\\n  storages_share_password: told-to-nobody"
    editor.write_text(f"#!/bin/sh\nsed -i 's/^passwords:.*/{secret}/' \"$1\"\n")
    editor.chmod(0o755)
    yard.with_env(EDITOR=str(editor)).run("secrets", "edit", "secrets.yaml")
    again = yard.json("import", "hypervisor:home", "--leave", "storages.vault,acme")["targets"][0]
    assert [row["object"] for row in again["imported"]] == ["storages.share"]
    assert [row["object"] for row in again["left_out"]] == [
        "storages.butter",
        "realms.ad",
        "tokens.anna@pve!ci",
        "tokens.root@pam!lab",
        "acl./vms",
    ]
    after = file(yard, "home").read_text()
    assert all(line in after.splitlines() for line in commented.splitlines())
    assert is_planned_empty(yard, "home")

    # As after a kill between file and state: the same import completes it, and the file is as it was.
    other = make(running, tmp_path / "other")
    file(other, "pve1").parent.mkdir()
    file(other, "pve1").write_text(texts["pve1"])
    completed = other.json("import", "hypervisor:pve1")["targets"][0]
    assert len(completed["imported"]) == len(done["targets"][1]["imported"])
    assert file(other, "pve1").read_text() == texts["pve1"]
    assert is_planned_empty(other, "pve1")


def test_what_was_applied_is_imported_as_it_was_written_and_drift_is_put_right(tmp_path: Path) -> None:
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        first, second = make(running, tmp_path / "first"), make(running, tmp_path / "second")
        file(first, "home").parent.mkdir()
        file(first, "home").write_text(OURS)
        first.run("apply", "hypervisor:home")
        second.run("import", "hypervisor:house")
        ours, theirs = objects_of(first, "home"), objects_of(second, "house")
        assert {name: theirs[name].attributes for name in ours} == {
            name: one.attributes for name, one in ours.items()
        }
        # Beside ours, there is what every new cluster has.
        assert {name.split()[1] for name in theirs.keys() - ours.keys()} == {"local", "local-lvm"}

        api = proxmoxer_client(running)
        api.storage("nas").put(content="iso", disable=1)
        api.access.roles("Starter").delete()
        api.cluster.firewall.aliases("lan").put(cidr="10.1.0.0/16")
        drift = second.json("drift", "hypervisor:house")
        subjects = {row["address"] for row in drift["managed"]}
        assert subjects >= {
            "proxmox_storage_nfs.nas",
            "proxmox_virtual_environment_role.Starter",
            "proxmox_virtual_environment_firewall_alias.lan",
        }
        second.run("apply", "hypervisor:house")
        assert is_planned_empty(second, "house")


@pytest.mark.bpg
def test_the_plan_of_the_real_provider_is_empty_too(running: lab.Running, tmp_path: Path) -> None:
    settings = mirror_of(find_judge("bpg"), real_engine(Flavour.TOFU).path, tmp_path / "bpg")
    yard = make(running, tmp_path / "site", STACKYARD_PROVIDER="bpg", STACKYARD_TOFU_CONFIG=str(settings))
    done = yard.json("import", "hypervisor:home", "--all", "-H", "lab")
    differing = {
        row["object"] for one in done["targets"] for row in one["left_out"] if "would" in row["reason"]
    }
    # bpg/proxmox wants to write its defaults where nothing is set.
    assert differing == {"sdn.zones.big", "sdn.zones.outer", "firewall.options"}
    assert is_planned_empty(yard, *TARGETS)


def test_bad_input_is_refused_before_anything_is_written(running: lab.Running, tmp_path: Path) -> None:
    yard = make(running, tmp_path / "site")
    file(yard, "home").parent.mkdir()
    file(yard, "home").write_text(yaml.safe_dump({"node": "pve1"}))
    for arguments in (
        ("hypervisor:home", "--node", "pve2"),
        ("hypervisor:home", "--all"),
        ("hypervisor:pve1", "--all"),
        ("hypervisor:home", "--filter", "web"),
        ("hypervisor:new", "--node", "pve1,pve2"),
        ("hypervisor:../up",),
        ("env:t", "--all"),
    ):
        assert yard.run("import", *arguments, "-H", "lab", status=None).status == 64, arguments
    file(yard, "home").write_text("storages:\n  nas: {type: nfs, server: 1.2.3.4, exprot: /x}\n")
    error = yard.json("import", "hypervisor:home", "-H", "lab", status=65)["error"]
    assert error["diagnostics"][0]["where"]["line"] == 2


def test_a_certificate_of_one_s_own_is_imported_and_a_zfs_pool_is_named(tmp_path: Path) -> None:
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        node = proxmoxer_client(running).nodes("pve1")
        node.disks.zfs.post(name="plain", raidlevel="single", devices="/dev/sda")
        certificate, key = FIRST.certificate_pem.decode(), FIRST.key_pem.decode()
        node.certificates.custom.post(certificates=certificate, key=key, force=1)
        yard = make(running, tmp_path / "site")
        done = yard.json("import", "hypervisor:pve1", "--node", "pve1")["targets"][0]
        assert {row["object"]: row["reason"] for row in done["left_out"]} == {
            "zfs.plain": "Proxmox does not show `devices`, `raidlevel`, which a file has to say.",
            "certificate": "Proxmox does not show `private_key`, and the site has no secret for it.",
        }
        assert is_planned_empty(yard, "pve1")
        secret = yamledit.Set(("passwords", "certificate_private_key"), key)
        change_secrets(yard.folder / "secrets.yaml", [secret])
        again = yard.json("import", "hypervisor:pve1", "--leave", "zfs")["targets"][0]
        assert [row["object"] for row in again["imported"]] == ["certificate"]
        assert key not in file(yard, "pve1").read_text()
        assert is_planned_empty(yard, "pve1")


def test_each_token_and_its_roles_are_named_with_the_reason(tmp_path: Path) -> None:
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        api = proxmoxer_client(running)
        api.access.users.post(userid="anna@pve")
        api.access.users("anna@pve").token("ci").post(comment='for "CI"', expire=2_000_000_000)
        api.access.acl.put(path="/vms", tokens="anna@pve!ci", roles="PVEAuditor")
        yard = make(running, tmp_path / "site")
        command = ("import", "hypervisor:all", "-H", "lab", "--all", "--dry-run")
        left = {row["object"]: row["reason"] for row in yard.json(*command)["targets"][0]["left_out"]}
        assert set(left) == {"tokens.root@pam!lab", "tokens.anna@pve!ci", "acl./vms"}
        assert "`api_tokens.lab`" in left["tokens.root@pam!lab"]
        assert "Proxmox does not show its secret" in left["tokens.anna@pve!ci"]
        assert "role PVEAuditor, which `tokens` does not have" in left["acl./vms"]
        assert "Left out: tokens.anna@pve!ci." in yard.run(*command).stdout
        assert not yard.json(*command, "--leave", "tokens,acl")["targets"][0]["left_out"]

        # Written as the reason says, both are managed, and named no more.
        yard.run("import", "hypervisor:home", "-H", "lab")
        (said,) = re.findall(r"`(\S+: \{.*\})`", left["tokens.root@pam!lab"])
        with file(yard, "home").open("a") as written:
            written.write(f"tokens: {{{said}}}\n")
        assert yard.run("apply", "hypervisor:home").status == 0
        assert is_planned_empty(yard, "home")
        (again,) = yard.json("import", "hypervisor:home", "-H", "lab")["targets"]
        assert {row["object"] for row in again["left_out"]} == {"tokens.anna@pve!ci", "acl./vms"}


def test_what_is_there_and_cannot_work_is_left_out_with_the_reason(tmp_path: Path) -> None:
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        api = proxmoxer_client(running)
        network = api.nodes("pve1").network
        network.post(iface="vmbr9", type="bridge", bridge_vlan_aware=1, bridge_vids="2-10")
        network.post(iface="vmbr9.20", type="vlan", cidr="192.0.2.1/24")
        api.storage.post(storage="again", type="dir", path="/var/lib/vz", content="iso")
        yard = make(running, tmp_path / "site")
        done = yard.json("import", "hypervisor:home", "-H", "lab", "--all")["targets"]
        left = {row["object"]: row["reason"] for one in done for row in one["left_out"]}
        assert left["vlans.vmbr9.20"] == "'vmbr9' passes the VLANs 2-10, and 20 is none of them."
        assert left["storages.local"] == "'again' and 'local' are both /var/lib/vz."
        assert "vmbr9.20" not in file(yard, "pve1").read_text()
        for name in ("home", "pve1"):
            assert is_planned_empty(yard, name)
        assert {"vmbr0", "vmbr9"} <= set(yaml.safe_load(file(yard, "pve1").read_text())["bridges"])
