"""Each resolved value says the file and line that it came from."""

from __future__ import annotations

from pathlib import Path

from tests.support.site import FULL, SEED, write_site

from stackyard.sources.site import ConfigResolver
from stackyard.sources.site.explain import explain_env


def origins(folder: Path, env: str, node: str | None = None) -> dict[tuple[str, str], str]:
    values = explain_env(ConfigResolver(folder), env, node)
    return {
        (one.section, one.key): "default" if one.where is None else str(one.where).removeprefix(f"{folder}/")
        for one in values
    }


def test_each_value_of_the_seed_names_its_line(tmp_path: Path) -> None:
    env = "posture: stage\nvmid_base: 99900\nvms:\n  - {name: test, template: test, disk: 30}\n"
    found = origins(write_site(tmp_path, envs__dev=env), "dev", "father")
    assert found["node", "api_endpoint"] == "nodes/father.yaml:2:15"
    assert found["node", "api_token"] == "secrets.yaml:3:11"
    assert found["node", "ssh_user"] == "default"
    assert found["node", "spec_server"] == "site.yaml:7:16"
    assert found["vm test", "vmid"] == "envs/dev.yaml:2:12"
    assert found["vm test", "cores"] == "vms/presets/small.yaml:1:8"
    assert found["vm test", "image"] == "vms/test.yaml:2:8"
    assert found["vm test", "disk"] == "envs/dev.yaml:4:40"
    assert found["vm test", "bridge"] == "default"
    assert found["vm test", "auth_token"] == "secrets.yaml:10:15"
    assert found["ansible", "timezone"] == "site.yaml:3:13"
    assert found["ansible", "ssh_permit_root_login"] == "v2/postures/stage.yaml:2:26"
    assert found["ansible", "ssh_port"] == "default"


def test_what_a_network_gives_a_guest_names_the_network(tmp_path: Path) -> None:
    found = origins(write_site(tmp_path, FULL), "shop")
    assert found["vm web1", "bridge"].startswith("envs/shop.yaml:5:")
    assert found["vm web1", "gateway"] == "envs/shop.yaml:9:13"
    assert found["vm web1", "memory"] == "envs/shop.yaml:27:29"
    assert found["ct cache", "vlan"].startswith("site.yaml:12:")


def test_every_value_that_is_resolved_is_explained(tmp_path: Path) -> None:
    resolver = ConfigResolver(write_site(tmp_path, FULL))
    resolved = resolver.resolve_env("shop")
    explained = {(one.section, one.key): one.value for one in explain_env(resolver, "shop")}
    for key, value in resolved.items():
        if key != "vms":
            assert explained["node", key] == value
    for guest in resolved["vms"]:
        kind = guest.get("type", "vm")
        for key, value in guest.items():
            assert explained[f"{kind} {guest['name']}", key] == value
    for key, value in resolver.resolve_ansible_vars("shop").items():
        assert explained["ansible", key] == value


def test_a_vmid_of_its_own_names_its_own_line(tmp_path: Path) -> None:
    env = SEED["envs/dev.yaml"] + "    vmid: 7777\n"
    assert (
        origins(write_site(tmp_path, envs__dev=env), "dev", "pve")["vm test", "vmid"] == "envs/dev.yaml:9:11"
    )
