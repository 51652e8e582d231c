"""A spec reaches its guest whole: posture, every user, every key, the packages of the site."""

from __future__ import annotations

from pathlib import Path

from tests.support.site import KEY, KEY_2, SEED, write_site

from stackyard.sources.site import ConfigResolver

WORKED = """\
schema_version: 1
access: {posture: dev, users: [{name: homestak, sudo: true}]}
platform: {packages: [htop, curl]}
config: {timezone: America/Denver}
"""


def test_the_worked_example_comes_out_as_stated_with_the_site_packages_on_top(tmp_path: Path) -> None:
    site = "defaults: {packages: [tmux]}\n"
    variables = ConfigResolver(write_site(tmp_path, v2__specs__base=WORKED, site=site)).resolve_spec_vars(
        "base"
    )
    assert variables["packages"] == ["tmux", "htop", "curl", "net-tools", "strace", "tcpdump"]
    assert variables["local_user"] == "homestak"
    assert variables["ssh_authorized_keys"] == [KEY, KEY_2]
    assert variables["timezone"] == "America/Denver"
    assert (variables["ssh_port"], variables["ssh_permit_root_login"]) == (22, "yes")
    assert (variables["ssh_password_authentication"], variables["sudo_nopasswd"]) == ("yes", True)
    assert variables["fail2ban_enabled"] is False


def test_the_posture_is_part_of_what_a_guest_receives(tmp_path: Path) -> None:
    spec = WORKED.replace("posture: dev", "posture: prod")
    resolved = ConfigResolver(write_site(tmp_path, v2__specs__base=spec)).resolve_spec("base")
    posture = resolved["access"]["_posture"]
    assert posture["ssh"]["permit_root_login"] == "no"
    assert posture["fail2ban"]["enabled"] is True
    assert posture["auth"]["method"] == "node_token"


def test_every_user_is_there_with_exactly_its_keys(tmp_path: Path) -> None:
    variables = ConfigResolver(write_site(tmp_path)).resolve_spec_vars("base")
    assert variables["users"] == [
        {"name": "homestak", "sudo": True, "ssh_keys": [KEY, KEY_2]},
        {"name": "ops", "sudo": False, "ssh_keys": [KEY_2]},
    ]


def test_what_a_spec_leaves_out_is_the_sites(tmp_path: Path) -> None:
    spec = "schema_version: 1\n"
    resolved = ConfigResolver(write_site(tmp_path, v2__specs__base=spec)).resolve_spec("base")
    assert resolved["identity"] == {"hostname": "base", "domain": "example.com"}
    assert resolved["config"]["timezone"] == "America/Denver"
    assert resolved["access"]["posture"] == "dev"
    assert resolved["platform"]["packages"][:3] == ["htop", "curl", "wget"]


def test_identity_network_and_services_are_handed_on(tmp_path: Path) -> None:
    spec = """\
schema_version: 1
identity: {hostname: web, domain: shop.example}
network: {ip: 192.0.2.9/24, gateway: 192.0.2.1, dns: [192.0.2.53]}
platform: {services: {enable: [a], disable: [b]}}
config: {pve: {remove_subscription_nag: false}, other: {kept: [1]}}
"""
    resolver = ConfigResolver(write_site(tmp_path, v2__specs__base=spec))
    variables = resolver.resolve_spec_vars("base")
    assert (variables["hostname"], variables["domain"]) == ("web", "shop.example")
    assert variables["network"] == {"ip": "192.0.2.9/24", "gateway": "192.0.2.1", "dns": ["192.0.2.53"]}
    assert (variables["services_enable"], variables["services_disable"]) == (["a"], ["b"])
    assert variables["pve_remove_subscription_nag"] is False
    assert resolver.resolve_spec("base")["config"]["other"] == {"kept": [1]}


def test_a_guest_with_a_spec_gets_its_users_at_the_first_boot_with_the_sudo_of_its_posture(
    tmp_path: Path,
) -> None:
    env = SEED["envs/dev.yaml"] + "    spec: base\n"
    boot = ConfigResolver(write_site(tmp_path, envs__dev=env)).resolve_desired("dev", "pve").vms[0].cloud_init
    assert boot is not None
    assert {user.name: user.sudo for user in boot.users} == {
        "homestak": "nopasswd",
        "ops": False,
        "root": False,
    }
    assert boot.timezone == "Europe/Zurich"
    assert "git" in boot.packages


def test_a_posture_that_asks_for_a_password_gives_no_sudo_without_but_to_automation_which_has_none(
    tmp_path: Path,
) -> None:
    nested = SEED["v2/postures/dev.yaml"].replace("nopasswd: true", "nopasswd: false")
    users = "[{name: homestak, sudo: true}, {name: ops, sudo: true}, {name: x}]"
    spec = f"schema_version: 1\naccess:\n  users: {users}\n"
    env = SEED["envs/dev.yaml"] + "    spec: base\n"
    site = write_site(tmp_path, v2__postures__dev=nested, v2__specs__base=spec, envs__dev=env)
    boot = ConfigResolver(site).resolve_desired("dev", "pve").vms[0].cloud_init
    assert boot is not None
    sudo = {user.name: user.sudo for user in boot.users if user.name != "root"}
    assert sudo == {"homestak": "nopasswd", "ops": True, "x": False}
