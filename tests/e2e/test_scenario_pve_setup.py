"""`pve-setup` on a machine with Debian: the documented commands, in their order, up to the file of a node."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.debian_host import DebianHost
from tests.support.scenarios import run_scripted, site_of

from stackyard.base import events
from stackyard.scenario.options import ScenarioOptions
from stackyard.sources.site.load import Site

SITE = {
    "site.yaml": "defaults:\n  timezone: Europe/Zurich\n  packages: [htop, curl]\n",
    "hosts/father.yaml": "# The big one\nhost: father\nip: 10.0.12.61\n",
    "secrets.yaml": "# Ours\npasswords: {}\n",
}
TOKEN = "01234567-89ab-cdef-0123-456789abcdef"


@pytest.mark.parametrize("suite", ["trixie", "bookworm"])
def test_a_fresh_debian_becomes_a_node_of_the_site(suite: str, tmp_path: Path) -> None:
    machine = DebianHost(suite=suite)
    outcome = run_scripted(machine, "pve-setup", tmp_path, site=site_of(tmp_path / "site", SITE))
    assert outcome.error is None, outcome.error.detail
    assert machine.unknown == []
    assert [phase.status for phase in outcome.phases] == ["passed"] * 4
    assert machine.boots == 2
    steps = [script for script in machine.scripts if "apt-get" in script or "reboot" in script]
    assert [step.rpartition("confold ")[2] for step in steps if "remove" not in step] == [
        "update",
        "install ca-certificates curl",
        "update",
        "full-upgrade",
        "install proxmox-default-kernel",
        "systemctl reboot",
        "install proxmox-ve postfix open-iscsi chrony",
        "update",
        "install htop",
    ]
    assert f"Suites: {suite}" in machine.files["/etc/apt/sources.list.d/pve-install-repo.sources"]
    assert all(ran.as_root for ran in machine.ran if "apt-get" in ran.script)
    made = Site.load(tmp_path / "site")
    node = made.nodes["father"].model
    assert (node.api_endpoint, node.datastore, node.ip, node.host) == (
        "https://10.0.12.61:8006",
        "local-zfs",
        "10.0.12.61",
        "father",
    )
    assert made.secret_values.api_tokens["father"] == f"stackyard@pve!stackyard={TOKEN}"


def test_a_machine_that_knows_a_mirror_needs_no_repository_and_may_boot_once_more(tmp_path: Path) -> None:
    machine = DebianHost(is_offered=True, boots_needed=3)
    outcome = run_scripted(machine, "pve-setup", tmp_path, site=site_of(tmp_path / "site", SITE))
    assert outcome.error is None, outcome.error.detail
    assert machine.boots == 3
    assert not [script for script in machine.scripts if script.startswith("curl")]


def test_a_site_without_secrets_gets_encrypted_ones(tmp_path: Path) -> None:
    machine = DebianHost(packages={"proxmox-ve", "curl", "htop"})
    files = {name: text for name, text in SITE.items() if name != "secrets.yaml"}
    outcome = run_scripted(machine, "pve-setup", tmp_path, site=site_of(tmp_path / "site", files))
    assert outcome.error is None, outcome.error.detail
    assert TOKEN not in (tmp_path / "site" / "secrets.yaml").read_text()
    assert Site.load(tmp_path / "site").secret_values.api_tokens["father"].endswith(TOKEN)


def test_a_second_run_finds_everything_done_and_changes_nothing(tmp_path: Path) -> None:
    machine = DebianHost()
    run_scripted(machine, "pve-setup", tmp_path, site=site_of(tmp_path / "site", SITE))
    node, secrets = (tmp_path / "site" / name for name in ("nodes/father.yaml", "secrets.yaml"))
    before = node.read_bytes(), secrets.read_bytes()
    machine.ran.clear()
    machine.packages |= {"htop"}
    outcome = run_scripted(machine, "pve-setup", tmp_path / "again", site=Site.load(tmp_path / "site"))
    assert outcome.success
    changing = ("apt-get", "reboot", "pveum role", "pveum user add", "token add", "pvesm set", "pvesh create")
    assert [one for one in machine.scripts if one.startswith(changing) and " list" not in one] == []
    assert (node.read_bytes(), secrets.read_bytes()) == before


def test_what_a_node_file_says_already_stays_unless_it_is_forced(tmp_path: Path) -> None:
    own = "# mine\napi_endpoint: https://father.example:8006  # by name\ndatastore: tank\n"
    token = {"secrets.yaml": f"api_tokens: {{father: 'root@pam!old={TOKEN}'}}\n"}
    site = site_of(tmp_path / "site", {**SITE, **token, "nodes/father.yaml": own})
    machine = DebianHost(packages={"proxmox-ve", "curl", "htop"})
    outcome = run_scripted(machine, "pve-setup", tmp_path / "one", site=site)
    assert outcome.error is None, outcome.error.detail
    text = (tmp_path / "site" / "nodes" / "father.yaml").read_text()
    assert text.startswith(own)
    assert "ip: 10.0.12.61" in text
    assert "It says otherwise about api_endpoint, datastore: kept" in outcome.phases[-1].message
    forced = run_scripted(
        machine,
        "pve-setup",
        tmp_path / "two",
        site=Site.load(tmp_path / "site"),
        options=ScenarioOptions(force=True),
    )
    assert forced.error is None, forced.error.detail
    changed = (tmp_path / "site" / "nodes" / "father.yaml").read_text()
    assert "# mine" in changed
    assert "datastore: local-zfs" in changed
    assert "https://10.0.12.61:8006" in changed


def test_a_key_of_the_repository_that_is_not_the_published_one_stops_before_anything_is_installed(
    tmp_path: Path,
) -> None:
    machine = DebianHost(key_is_good=False)
    outcome = run_scripted(machine, "pve-setup", tmp_path, site=site_of(tmp_path / "site", SITE))
    assert outcome.error is not None
    assert "sha256sum -c -" in outcome.error.detail
    assert "ended with status 1" in outcome.error.detail
    assert machine.files == {}
    assert "proxmox-default-kernel" not in machine.packages
    assert [phase.status for phase in outcome.phases] == ["failed", "skipped", "skipped", "skipped"]


def test_a_machine_with_another_system_is_left_alone(tmp_path: Path) -> None:
    machine = DebianHost(suite="bullseye")
    outcome = run_scripted(machine, "pve-setup", tmp_path, site=site_of(tmp_path / "site", SITE))
    assert outcome.error is not None
    assert outcome.error.code == "E-SCENARIO-MACHINE"
    assert "debian bullseye (amd64)" in outcome.error.detail
    assert not any("apt-get" in script for script in machine.scripts)


def test_a_run_that_was_stopped_after_the_restart_goes_on_from_there(tmp_path: Path) -> None:
    machine = DebianHost(boots=2, packages={"proxmox-default-kernel", "curl"})
    outcome = run_scripted(machine, "pve-setup", tmp_path, site=site_of(tmp_path / "site", SITE))
    assert outcome.error is None, outcome.error.detail
    assert machine.boots == 2
    assert not any("full-upgrade" in script for script in machine.scripts)


def test_the_token_is_in_no_event_and_no_context(tmp_path: Path) -> None:
    machine = DebianHost(packages={"proxmox-ve", "curl", "htop"})
    seen: list[events.Event] = []
    outcome = run_scripted(machine, "pve-setup", tmp_path, site=site_of(tmp_path / "site", SITE), seen=seen)
    assert outcome.success
    assert TOKEN not in repr(seen)
    assert TOKEN not in repr(outcome.document(plain_error=True))


def test_the_role_of_the_token_has_only_rights_that_this_proxmox_knows(tmp_path: Path) -> None:
    machine = DebianHost(packages={"proxmox-ve", "curl", "htop"})
    run_scripted(machine, "pve-setup", tmp_path, site=site_of(tmp_path / "site", SITE))
    assert machine.roles["Stackyard"] == "Datastore.Audit,VM.Allocate,VM.Audit,VM.GuestAgent.Audit"


def test_a_bridge_is_made_over_the_interface_of_the_default_route_with_its_address(tmp_path: Path) -> None:
    machine = DebianHost(packages={"proxmox-ve", "curl", "htop"})
    run_scripted(machine, "pve-setup", tmp_path, site=site_of(tmp_path / "site", SITE))
    made = [script for script in machine.scripts if script.startswith("pvesh create")]
    assert made == [
        "pvesh create /nodes/father/network --iface vmbr0 --type bridge --autostart 1 --bridge_ports eno1 "
        "--cidr 10.0.12.61/24 --gateway 10.0.12.1"
    ]
    assert machine.contents == "iso,vztmpl,backup,snippets,import"
    assert machine.timezone == "Europe/Zurich"
