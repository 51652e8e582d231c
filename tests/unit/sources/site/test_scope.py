"""What is wrong with a file stops what uses it, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.site import FULL, SEED, write_site

from stackyard.base import events
from stackyard.base.errors import InvalidInputError
from stackyard.sources.site import ConfigResolver, Site
from stackyard.sources.site.resolver import NodeNotChosenError

# Files that the env `dev` on the node `pve` does not use, each with something wrong in it.
UNUSED = {
    "a wrong key in another env": ("envs/other.yaml", "vms: []\nnods: pve\n"),
    "another env that is not YAML": ("envs/other.yaml", "vms: [\n"),
    "a template that another env misses": ("envs/other.yaml", "vms: [{name: a, template: gone}]\n"),
    "another env under a name that is not read": ("envs/other.yml", "vms: []\n"),
    "another node": ("nodes/father.yaml", "api_endpoint: 7\n"),
    "a token that another node misses": (
        "nodes/father.yaml",
        "api_endpoint: https://192.0.2.1:8006\ndatastore: local\napi_token: gone\n",
    ),
    "a host that the node does not name": ("hosts/father.yaml", "ip: [1]\n"),
    "a template": ("vms/nested-pve.yaml", "presett: large\n"),
    "a preset": ("vms/presets/large.yaml", "cores: many\n"),
    "a posture": ("v2/postures/stage.yaml", "auth: 3\n"),
    "a spec": ("v2/specs/base.yaml", "schema_version: 9\n"),
    "a manifest": ("manifests/n2-quick.yaml", "nodes: 3\n"),
}
ENV = {"envs/dev.yaml": "node: pve\n" + SEED["envs/dev.yaml"]}


@pytest.mark.parametrize("name", UNUSED)
def test_a_file_that_is_not_used_stops_nothing_and_is_reported_once(name: str, tmp_path: Path) -> None:
    path, text = UNUSED[name]
    seen: list[events.Event] = []
    resolver = ConfigResolver(write_site(tmp_path, {**SEED, **ENV, path: text}), emit=seen.append)
    assert resolver.resolve_desired("dev").vms[0].name == "test"
    resolver.resolve_env("dev")
    resolver.resolve_env("dev")
    found = [event for event in seen if isinstance(event, events.DiagnosticFound)]
    assert len(found) == len(resolver.site.found.errors) > 0
    assert {event.file for event in found} == {str(tmp_path / path)}
    assert {event.severity for event in found} == {"warning"}


# What the env uses, each with something wrong in it; the same env as above, with everything that it can use.
USED = {
    "the env": ("envs/dev.yaml", "vmid_bas: 1\nvms: []\n"),
    "the env under a name that is not read": ("envs/dev.yml", "vms: []\n"),
    "the node": ("nodes/pve.yaml", "api_endpoint: 7\n"),
    "the host of the node": ("hosts/iron.yaml", "ip: 7\n"),
    "the template": ("vms/test.yaml", "presett: small\n"),
    "the preset of the template": ("vms/presets/small.yaml", "cores: many\n"),
    "the posture": ("v2/postures/dev.yaml", "auth: 3\n"),
    "the other form of the posture": ("postures/dev.yaml", "ssh_port: no\n"),
    "the spec": ("v2/specs/test.yaml", "schema_version: 9\n"),
    "the posture of the spec": ("v2/postures/stage.yaml", "auth: 3\n"),
    "site.yaml": ("site.yaml", "defaults: 3\n"),
    "the secrets": ("secrets.yaml", "api_tokens: 3\n"),
}
WHOLE = {
    "hosts/iron.yaml": "ip: 192.0.2.9\n",
    "nodes/pve.yaml": SEED["nodes/pve.yaml"] + "host: iron\n",
    "envs/dev.yaml": "node: pve\nposture: dev\nvms: [{name: test, template: test}]\n",
    "v2/specs/test.yaml": "schema_version: 1\naccess: {posture: stage}\n",
}


@pytest.mark.parametrize("name", USED)
def test_a_file_that_is_used_stops_the_env_with_its_problems_alone(name: str, tmp_path: Path) -> None:
    path, text = USED[name]
    files = {**SEED, **WHOLE, "envs/other.yaml": "vms: 3\n"}
    assert ConfigResolver(write_site(tmp_path / "sound", files)).resolve_desired("dev").vms
    if path == "envs/dev.yml":
        files.pop("envs/dev.yaml")
    folder = write_site(tmp_path / "broken", {**files, path: text})
    with pytest.raises(InvalidInputError) as caught:
        ConfigResolver(folder).resolve_desired("dev")
    files_said = {found.where.path for found in caught.value.diagnostics if found.where is not None}
    assert str(folder / path) in files_said
    assert str(folder / "envs/other.yaml") not in files_said


def test_an_id_that_two_envs_of_a_node_have_stops_both(tmp_path: Path) -> None:
    other = ENV["envs/dev.yaml"].replace("name: test", "name: second")
    resolver = ConfigResolver(write_site(tmp_path, {**SEED, **ENV, "envs/other.yaml": other}))
    for env in ("dev", "other"):
        with pytest.raises(InvalidInputError, match="1 problem"):
            resolver.resolve_desired(env)


def test_a_node_that_cannot_be_read_is_not_passed_over_for_the_only_other(tmp_path: Path) -> None:
    resolver = ConfigResolver(write_site(tmp_path, {**SEED, "nodes/father.yaml": "api_endpoint: 7\n"}))
    with pytest.raises(NodeNotChosenError, match="father, pve"):
        resolver.resolve_desired("dev")
    assert resolver.resolve_desired("dev", "pve").vms


def test_a_network_that_connects_all_nodes_uses_the_files_of_all(tmp_path: Path) -> None:
    resolver = ConfigResolver(write_site(tmp_path, {**FULL, "nodes/pve3.yaml": "api_endpoint: 7\n"}))
    with pytest.raises(InvalidInputError, match="The env 'shop'"):
        resolver.resolve_desired("shop")


def test_what_all_use_stops_all(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError):
        ConfigResolver(write_site(tmp_path, site="defaults: {gatway: 192.0.2.1}\n"))


@pytest.mark.parametrize("text", ["posture: dev\n", "posture: dev\nvms:\n", "posture: dev\nvms: []\n"])
def test_an_env_without_guests_is_warned_of_and_wants_nothing(text: str, tmp_path: Path) -> None:
    site = Site.open(write_site(tmp_path, envs__later=text))
    assert [found.kind.code for found in site.found] == ["W-SITE-ENV-EMPTY"]
    resolver = ConfigResolver(site)
    assert resolver.resolve_desired("later", "pve").is_empty
    assert resolver.resolve_env("later", "pve")["vms"] == []
    assert resolver.resolve_desired("dev", "pve").vms


def test_a_text_with_nothing_in_it_is_a_key_that_is_not_set(tmp_path: Path) -> None:
    blank = {
        "site.yaml": """\
defaults: {timezone: "", domain: "", ssh_user: "", automation_user: "", ssh_key_file: "", ansible: "",
  bridge: "", gateway: "", spec_server: "", server_url: "", spec_server_pin: "", packer_release: "",
  image_release: ""}
""",
        "nodes/pve.yaml": """\
{node: "", host: "", parent_node: "", api_endpoint: "https://localhost:8006", api_token: "",
  api_fingerprint: "", datastore: local-zfs, ip: "", ssh_user: "", controller_address: ""}
""",
        "hosts/father.yaml": """\
{host: "", domain: "", ip: "", timezone: "", access: {ssh_user: ""},
  network: {interfaces: {vmbr0: {address: "", gateway: ""}}}}
""",
        "vms/test.yaml": 'preset: small\nimage: debian-12\nspec: ""\nbridge: ""\n',
        "envs/dev.yaml": """\
node: ""
description: ""
vms: [{name: test, template: test, preset: "", ip: "", gateway: "", network: "", mac: "", node: ""}]
""",
        "v2/specs/base.yaml": 'schema_version: 1\nidentity: {hostname: "", domain: ""}\n',
        "manifests/n2-quick.yaml": SEED["manifests/n2-quick.yaml"].replace(
            "disk: 64", 'disk: 64, parent: ""'
        ),
    }
    site = Site.open(write_site(tmp_path, {**SEED, **blank}))
    assert not site.found.errors
    resolver = ConfigResolver(site)
    config = resolver.resolve_env("dev", "pve")
    assert (config["spec_server"], config["ssh_user"]) == ("", "root")
    assert config["vms"][0]["bridge"] == "vmbr0"
    assert "gateway" not in config["vms"][0]
    assert resolver.resolve_spec("base")["identity"] == {"hostname": "base", "domain": None}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("envs/dev.yaml", 'posture: ""\nvms: []\n'),
        ("envs/dev.yaml", 'vms: [{name: "", template: test}]\n'),
        ("nodes/pve.yaml", 'api_endpoint: ""\ndatastore: local\n'),
        ("site.yaml", 'defaults: {dns_servers: [""]}\n'),
        ("envs/dev.yaml", 'vmid_base: ""\nvms: []\n'),
    ],
)
def test_a_text_with_nothing_in_it_is_wrong_where_something_has_to_be(
    name: str, text: str, tmp_path: Path
) -> None:
    site = Site.open(write_site(tmp_path, {**SEED, name: text}))
    assert [found.kind.code for found in site.found.errors] == ["E-SITE-VALUE"]
