"""The seed's examples and the worked examples of its code come out field for field."""

from __future__ import annotations

import stat
from pathlib import Path

import orjson
import pytest
from tests.support.site import FULL, HASH, KEY, KEY_2, SEED, TOKEN, write_site

from stackyard.base.errors import InvalidInputError
from stackyard.sources.site import ConfigResolver, Site
from stackyard.sources.site.resolver import NodeNotChosenError, NotInSiteError

MIX = """\
posture: prod
vmid_base: 10000
vms:
  - {name: kube1, template: test, ip: 10.0.12.5/24}
  - {name: kube2, template: nested-pve, vmid: 20500, cores: 6}
  - {name: kube3, cores: 1, memory: 512, disk: 4, image: debian-13}
"""


@pytest.fixture
def resolver(tmp_path: Path) -> ConfigResolver:
    return ConfigResolver(write_site(tmp_path))


def test_the_tofu_structure_of_the_seed_comes_out_field_for_field(resolver: ConfigResolver) -> None:
    resolved = resolver.resolve_env(env="dev", node="pve")
    seed = {
        "node": "pve",
        "api_endpoint": "https://localhost:8006",
        "api_token": TOKEN,
        "ssh_user": "root",
        "datastore": "local-zfs",
        "root_password": HASH,
        "ssh_keys": [KEY, KEY_2],
        "spec_server": "https://controller:44443",
        "vms": [
            {
                "name": "test",
                "vmid": 99900,
                "image": "debian-12",
                "cores": 1,
                "memory": 2048,
                "disk": 20,
                "bridge": "vmbr0",
                "auth_token": "",
            }
        ],
    }
    assert resolved == {**seed, "automation_user": "homestak", "ssh_host": "127.0.0.1"}


def test_the_ansible_structure_of_the_seed_comes_out_field_for_field(resolver: ConfigResolver) -> None:
    assert resolver.resolve_ansible_vars(env="dev") == {
        "timezone": "America/Denver",
        "pve_remove_subscription_nag": True,
        "packages": ["htop", "curl", "wget", "net-tools", "strace"],
        "ssh_port": 22,
        "ssh_permit_root_login": "yes",
        "ssh_password_authentication": "yes",
        "sudo_nopasswd": True,
        "fail2ban_enabled": False,
        "env_name": "dev",
        "posture_name": "dev",
        "ssh_authorized_keys": [KEY, KEY_2],
    }


def test_the_worked_example_comes_out_as_its_authors_code_ran_it(tmp_path: Path) -> None:
    secrets = SEED["secrets.yaml"].replace(
        "    test: node-token-of-test", "    {kube1: nt, kube2: n2, kube3: n3}"
    )
    site = SEED["site.yaml"] + "  gateway: 10.0.12.1\n"
    resolver = ConfigResolver(write_site(tmp_path, envs__mix=MIX, secrets=secrets, site=site))
    resolved = resolver.resolve_env("mix", "father")
    common = {"bridge": "vmbr0", "gateway": "10.0.12.1"}
    assert resolved["ssh_host"] == "10.0.12.61"
    assert resolved["vms"] == [
        {
            "name": "kube1",
            "vmid": 10000,
            "image": "debian-12",
            "cores": 2,
            "memory": 2048,
            "disk": 10,
            "ip": "10.0.12.5/24",
            "auth_token": "nt",
            **common,
        },
        {
            "name": "kube2",
            "vmid": 20500,
            "image": "debian-13-pve",
            "cores": 6,
            "memory": 8192,
            "disk": 64,
            "auth_token": "n2",
            **common,
        },
        {
            "name": "kube3",
            "vmid": 10002,
            "image": "debian-13",
            "cores": 1,
            "memory": 512,
            "disk": 4,
            "auth_token": "n3",
            **common,
        },
    ]
    variables = resolver.resolve_ansible_vars("mix")
    assert variables["packages"] == ["htop", "curl", "wget"]
    assert variables["ssh_permit_root_login"] == "no"
    assert variables["fail2ban_enabled"] is True


@pytest.mark.parametrize(
    ("posture", "token"), [("dev", ""), ("stage", "site-token-value"), ("prod", "node-token-of-test")]
)
def test_the_token_of_a_guest_is_what_its_posture_asks_for(posture: str, token: str, tmp_path: Path) -> None:
    env = SEED["envs/dev.yaml"].replace("posture: dev", f"posture: {posture}")
    resolver = ConfigResolver(write_site(tmp_path, envs__dev=env))
    assert resolver.resolve_env("dev", "pve")["vms"][0]["auth_token"] == token


@pytest.mark.parametrize(
    ("base", "own", "vmid"),
    [
        ("vmid_base: 500", "", 501),
        ("", "", None),
        ("vmid_base: 500", "vmid: 7000", 7000),
        ("", "vmid: 7000", 7000),
        ("", "vm_id: 7000", 7000),
        ("vmid_base: 500", "vmid: null", None),
    ],
)
def test_a_vmid_is_the_guests_own_else_counted_else_left_to_proxmox(
    base: str, own: str, vmid: int | None, tmp_path: Path
) -> None:
    env = f"{base}\nvms:\n  - {{name: a, template: test}}\n  - {{name: b, template: test, {own}}}\n"
    resolver = ConfigResolver(write_site(tmp_path, envs__dev=env))
    assert resolver.resolve_env("dev", "pve")["vms"][1]["vmid"] == vmid
    assert resolver.resolve_desired("dev", "pve").vms[1].vm_id == vmid


def test_each_layer_counts_over_the_one_before(tmp_path: Path) -> None:
    env = "vms:\n  - {name: a, template: nested-pve, disk: 100, preset: xsmall, cpu: {cores: 7}}\n"
    vm = ConfigResolver(write_site(tmp_path, envs__dev=env)).resolve_env("dev", "pve")["vms"][0]
    # Of the template: its image; of the entry's own preset: the memory; of the entry: cores and disk.
    assert (vm["image"], vm["memory"], vm["cores"], vm["disk"]) == ("debian-13-pve", 1024, 7, 100)


def test_a_short_form_of_the_entry_counts_over_the_long_one_of_the_template(tmp_path: Path) -> None:
    template = """\
preset: small
image: debian-12
cpu: {cores: 2, type: host}
nics: [{bridge: vmbr1, ipv4: 198.51.100.9/24, model: e1000}, {bridge: vmbr2}]
disks: [{size_gib: 5, ssd: true}]
"""
    env = "vms:\n  - {name: a, template: t, cores: 8, ip: 198.51.100.10/24, disk: 50}\n"
    resolver = ConfigResolver(write_site(tmp_path, envs__dev=env, vms__t=template))
    vm = resolver.resolve_desired("dev", "pve").vms[0]
    assert (vm.cpu.cores, vm.cpu.type) == (8, "host")
    assert (vm.nics[0].bridge, vm.nics[0].ipv4, vm.nics[0].model) == ("vmbr1", "198.51.100.10/24", "e1000")
    assert vm.nics[1].bridge == "vmbr2"
    assert (vm.disks[0].size_gib, vm.disks[0].ssd) == (50, True)


def test_everything_is_listed(resolver: ConfigResolver) -> None:
    assert resolver.list_envs() == ["dev"]
    assert resolver.list_postures() == ["dev", "prod", "stage"]
    assert resolver.list_templates() == ["nested-pve", "test"]
    assert resolver.list_presets() == ["large", "small", "vm-large", "vm-medium", "vm-small", "xsmall"]
    assert resolver.list_hosts() == ["father"]
    assert resolver.list_nodes() == ["father", "pve"]
    assert resolver.list_specs() == ["base"]
    assert resolver.list_manifests() == ["n2-quick"]


def test_files_of_variables_are_for_their_owner_alone(resolver: ConfigResolver, tmp_path: Path) -> None:
    for name, config, write in (
        ("tfvars.json", resolver.resolve_env("dev", "pve"), resolver.write_tfvars),
        ("vars.json", resolver.resolve_ansible_vars("dev"), resolver.write_ansible_vars),
    ):
        path = tmp_path / name
        write(config, str(path))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert orjson.loads(path.read_bytes()) == config


def test_the_node_is_the_one_said_else_the_envs_own_else_the_only_one(tmp_path: Path) -> None:
    several = ConfigResolver(write_site(tmp_path / "a"))
    with pytest.raises(NodeNotChosenError, match="father, pve"):
        several.resolve_env("dev")
    own = ConfigResolver(write_site(tmp_path / "b", envs__dev="node: father\n" + SEED["envs/dev.yaml"]))
    assert own.resolve_env("dev")["node"] == "father"
    assert own.resolve_env("dev", "pve")["node"] == "pve"
    only = ConfigResolver(write_site(tmp_path / "c", nodes__father=None))
    assert only.resolve_env("dev")["node"] == "pve"


def test_what_is_not_there_is_an_error_and_never_an_env_without_guests(resolver: ConfigResolver) -> None:
    with pytest.raises(NotInSiteError, match=r"no env 'dve'.*`dev`"):
        resolver.resolve_env("dve", "pve")
    with pytest.raises(NotInSiteError, match="no node 'pev'"):
        resolver.resolve_env("dev", "pev")
    with pytest.raises(NotInSiteError, match=r"no spec 'bsae'.*`base`"):
        resolver.resolve_spec("bsae")
    with pytest.raises(NotInSiteError, match="no posture"):
        resolver.posture("nobody")


def test_a_machine_without_an_api_cannot_take_an_env(tmp_path: Path) -> None:
    resolver = ConfigResolver(write_site(tmp_path, nodes__father=None))
    with pytest.raises(NotInSiteError, match="SSH alone"):
        resolver.resolve_env("dev", "father")


def test_without_secrets_a_site_can_be_read_but_not_resolved(tmp_path: Path) -> None:
    site = Site.load(write_site(tmp_path, secrets=None))
    assert [finding.kind.code for finding in site.found] == ["W-SITE-NO-SECRETS"]
    with pytest.raises(NotInSiteError, match=r"api_tokens\.pve"):
        ConfigResolver(site).resolve_env("dev", "pve")


def test_a_site_with_problems_is_not_resolved(tmp_path: Path) -> None:
    write_site(tmp_path, envs__dev="vms: [{name: a}]\n", nodes__pve="api_endpoint: x\n")
    with pytest.raises(InvalidInputError) as caught:
        ConfigResolver(tmp_path).resolve_env("dev", "pve")
    assert len(caught.value.diagnostics) >= 3


def test_the_newer_layout_and_names_are_read(tmp_path: Path) -> None:
    resolver = ConfigResolver(write_site(tmp_path, FULL))
    resolved = resolver.resolve_env("shop")
    assert (resolved["ssh_user"], resolved["automation_user"]) == ("admin", "ops")
    assert resolved["dns_servers"] == ["192.0.2.53"]
    assert resolved["vms"][0]["cores"] == 2


def test_a_sites_secrets_are_known_to_its_redactor_and_its_keys_are_not(resolver: ConfigResolver) -> None:
    redact = resolver.site.redactor()
    for secret in (TOKEN, TOKEN.partition("=")[2], HASH, "site-token-value", "node-token-of-test"):
        assert secret not in redact(f"it is {secret}, yes")
    assert redact(KEY) == KEY
    assert set(resolver.secrets()) >= {"api_tokens.pve", "passwords.vm_root", "auth.site_token"}
    assert HASH not in repr(resolver.secrets()) + repr(resolver.site.secrets)
