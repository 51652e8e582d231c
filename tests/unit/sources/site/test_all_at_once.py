"""Every problem of a file at once: one kind of mistake hides no other, and one mistake is one problem."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cli import stackyard
from tests.support.site import SEED, write_site

from stackyard.base.errors import InvalidInputError
from stackyard.sources.manifest.read import ManifestRequest, find_manifest
from stackyard.sources.site import Site

# A file with a mistake in its shape and wrong references beside it: all that is found, by place.
FILES = {
    "an env": (
        "envs/dev.yaml",
        """\
posture: gone
node: gone
vms:
  - {name: a, template: gone, network: gone, node: gone, cpu: {sokets: 2}}
  - {name: b, preset: gone, image: gone, spec: gone, cores: two}
  - {template: test, ip: 10.0.0.300/24}
  - 5
""",
        {
            "1:10": "no posture 'gone'",
            "2:7": "no node 'gone'",
            "4:25": "no template 'gone'",
            "4:40": "no network 'gone'",
            "4:52": "no node 'gone'",
            "4:64": "`vms[0].cpu.sokets` is not known",
            "5:23": "no preset 'gone'",
            "5:36": "no image 'gone'",
            "5:48": "no spec 'gone'",
            "5:61": "`vms[1].cores` has to be a whole number",
            "6:5": "`vms[2].name` is missing",
            "6:26": "`vms[2].ip`",
            "7:5": "`vms[3]` has to be a mapping",
        },
    ),
    "a node": (
        "nodes/pve.yaml",
        "api_endpoint: 7\nhost: gone\nparent_node: gone\napi_token: gone\n",
        {
            "1:1": "`datastore` is missing",
            "1:15": "`api_endpoint` has to be a text",
            "2:7": "no host 'gone'",
            "3:14": "no node 'gone'",
            "4:12": "no `api_tokens` in secrets.yaml 'gone'",
        },
    ),
    "a spec": (
        "v2/specs/base.yaml",
        "schema_version: 2\naccess: {posture: gone, users: [{name: a, ssh_keys: [gone], sudo: maybe}]}\n",
        {
            "1:17": "`schema_version` is 2",
            "2:19": "no posture 'gone'",
            "2:54": "no `ssh_keys` in secrets.yaml 'gone'",
            "2:67": "`access.users[0].sudo` has to be true or false",
        },
    ),
    "a template": (
        "vms/test.yaml",
        "preset: gone\nspec: gone\nimage: debian-12\ncores: many\n",
        {"1:9": "no preset 'gone'", "2:7": "no spec 'gone'", "4:8": "`cores` has to be a whole number"},
    ),
    "a manifest": (
        "manifests/m.yaml",
        """\
schema_version: 2
name: m
nodes:
  - {name: a, type: vm, parent: b, preset: gone, image: gone, spec: gone, cors: 2}
""",
        {
            "4:33": "no node 'b'",
            "4:44": "no preset 'gone'",
            "4:57": "no image 'gone'",
            "4:69": "no spec 'gone'",
            "4:75": "`nodes[0].cors` is not known",
        },
    ),
    "a manifest of levels": (
        "manifests/m.yaml",
        """\
name: m
levels:
  - {name: a, vm_preset: gone, image: gone, cors: 2}
  - {name: b, template: gone, vmid: many}
  - {name: c, env: gone, vmid_offset: 1}
  - {vm_preset: small, post_scenario: other}
  - {name: e, vm_preset: [], image: gone}
""",
        {
            "3:26": "no preset 'gone'",
            "3:39": "no image 'gone'",
            "3:45": "`levels[0].cors` is not known",
            "4:25": "no template 'gone'",
            "4:37": "`levels[1].vmid` has to be a whole number",
            "5:20": "env 'gone', and there is no such env",
            "6:5": "`levels[3].name` is missing",
            "6:39": "runs the scenario 'other'",
            "7:26": "`levels[4].vm_preset`",
            "7:37": "no image 'gone'",
        },
    ),
    "a manifest of levels that have no equal": (
        "manifests/m.yaml",
        "name: m\nlevels:\n  - {name: a, vm_preset: gone, image: gone, post_scenario: other}\n",
        {"3:26": "no preset 'gone'", "3:39": "no image 'gone'", "3:60": "runs the scenario 'other'"},
    ),
    "the addresses and networks of an env": (
        "envs/dev.yaml",
        """\
node: pve
networks:
  too-long-name: {type: simple, cidr: 10.5.0.0/24, zone: z}
vms:
  - {name: a, template: test, ip: 10.0.0.7/24, gateway: 10.9.9.9}
  - {name: b, template: test, ip: 10.0.0.7/24, gateway: null}
  - {name: c, template: test, ip: 10.0.0.0/24, gateway: null, cores: two}
  - {name: d, template: test, ip: 10.0.0.300/24, gateway: 10.9.9.9}
""",
        {
            "3:3": "'too-long-name' cannot name a vnet",
            "5:57": "10.9.9.9, its gateway, is outside 10.0.0.0/24",
            "6:35": "'a' and 'b' both have 10.0.0.7",
            "7:35": "the network or broadcast address of its network",
            "7:70": "`vms[2].cores` has to be a whole number",
            "8:35": "`vms[3].ip`",
        },
    ),
    "an env in which addresses are not known whole": (
        "envs/dev.yaml",
        """\
node: pve
networks:
  lab: {type: simple, cidr: 10.5.0.0/24, zone: z, router: gw}
vms:
  - {nam: gw, template: test, network: lab, ip: 10.5.0.1/24}
  - {name: a, template: test, network: lab, ip: 10.5.0.7/24, gateway: 5}
""",
        {
            "5:5": "`vms[0].name` is missing",
            "5:6": "`vms[0].nam` is not known",
            "6:71": "`vms[1].gateway` has to be a text",
        },
    ),
    "an env with a network that is wrong": (
        "envs/dev.yaml",
        """\
node: pve
networks:
  lab: {type: simple, cidr: 10.5.0.0/99, zone: z}
vms:
  - {name: a, template: test, network: lab, ip: 10.5.0.7/24}
""",
        {"3:29": "`networks.lab.cidr`"},
    ),
    "a manifest whose parent is wrong": (
        "manifests/m.yaml",
        """\
schema_version: 2
name: m
nodes:
  - {name: a, type: vm, parent: b, preset: gone, image: gone, spec: gone}
""",
        {
            "4:33": "no node 'b'",
            "4:44": "no preset 'gone'",
            "4:57": "no image 'gone'",
            "4:69": "no spec 'gone'",
        },
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_everything_that_is_wrong_with_a_file_is_found_at_once(name: str, tmp_path: Path) -> None:
    path, text, wanted = FILES[name]
    site = write_site(tmp_path, {**SEED, path: text})
    error = stackyard("site", "validate", "--json", cwd=site).document["error"]
    found = {
        f"{one['where']['line']}:{one['where']['column']}": one["detail"]
        for one in error["diagnostics"]
        if one["where"]["file"] == path and one["severity"] == "error"
    }
    assert found.keys() == wanted.keys()
    assert all(said in found[place] for place, said in wanted.items()), found


def test_what_site_yaml_declares_in_wrong_words_is_not_called_missing(tmp_path: Path) -> None:
    settings = """\
images: {mine: {url: 5}}
networks: {lan: {type: bridge}}
"""
    env = """\
vms:
  - {name: a, preset: small, image: mine, network: lan}
  - {name: b, preset: small, image: other, network: wan}
"""
    found = Site.open(write_site(tmp_path, site=settings, envs__dev=env)).found.errors
    assert [one.detail for one in found if one.where and one.where.path.endswith("dev.yaml")] == [
        "There is no image 'other'.",
        "There is no network 'wan'.",
    ]


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        ("5", "`vms[0].cloud_init.user_data` has to be a text or a mapping, and is 5."),
        ("{fle: x}", "`vms[0].cloud_init.user_data.fle` is not known here. Did you mean `file`?"),
        ("{file: x, key: y}", "`vms[0].cloud_init.user_data.key` is not known here."),
        ("{file: 5}", "`vms[0].cloud_init.user_data.file` has to be a text, and is 5."),
        ("{text: 3}", "`vms[0].cloud_init.user_data.text` has to be a text or a list, and is 3."),
        ("{}", "`vms[0].cloud_init.user_data.file` or `vms[0].cloud_init.user_data.text` is missing."),
        ("[x]", "`vms[0].cloud_init.user_data` has to be a text or a mapping, and is a list."),
    ],
)
def test_a_value_that_may_be_several_things_has_one_problem(value: str, detail: str, tmp_path: Path) -> None:
    env = f"vms: [{{name: a, template: test, cloud_init: {{user_data: {value}}}}}]\n"
    (found,) = Site.open(write_site(tmp_path, envs__dev=env)).found.errors
    assert found.detail.startswith(detail)


@pytest.mark.parametrize("name", [name for name, (path, *_) in FILES.items() if path == "manifests/m.yaml"])
def test_a_manifest_that_is_no_file_of_the_site_is_checked_as_one_that_is(name: str, tmp_path: Path) -> None:
    _, text, wanted = FILES[name]
    site = write_site(tmp_path, SEED)
    (tmp_path / "m.yaml").write_text(text)
    with pytest.raises(InvalidInputError) as caught:
        find_manifest(Site.load(site), ManifestRequest(file=str(tmp_path / "m.yaml")))
    found = [one.where for one in caught.value.diagnostics if one.where is not None]
    assert sorted(f"{where.line}:{where.column}" for where in found) == sorted(wanted)
