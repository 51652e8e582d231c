"""Every problem of a file at once: one kind of mistake hides no other, and one mistake is one problem."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cli import stackyard
from tests.support.site import SEED, write_site

from stackyard.site import Site

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
