"""Manifests: what is wrong with one is found at its place, and what is right comes in the right order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.support.site import write_site

from stackyard.base.errors import InvalidInputError, UsageError
from stackyard.sources.manifest import Manifest, find_manifest
from stackyard.sources.manifest.diagram import as_dot, as_mermaid, as_tree
from stackyard.sources.manifest.model import Scope
from stackyard.sources.manifest.read import ManifestNotFoundError, ManifestRequest
from stackyard.sources.manifest.scopes import build_scope
from stackyard.sources.site import Site
from stackyard.sources.site.build_guest import NodeChoice

HEAD = "schema_version: 2\nname: m\n"
SMALLER = "parent: top, memory: 4096, disk: 20"
NODE = NodeChoice(name="pve", datastore="local-zfs")


def nodes(*lines: str, head: str = HEAD) -> str:
    """Return a manifest whose nodes begin at line 4 (with the plain head), one a line."""
    return head + "nodes:\n" + "".join(f"  - {{{line}}}\n" for line in lines)


def vm(name: str, more: str = "") -> str:
    """Return a machine that is whole."""
    return f"name: {name}, type: vm, preset: vm-small, image: debian-12{more and ', ' + more}"


def pve(name: str, more: str = "") -> str:
    """Return a node that others can be inside of."""
    return f"name: {name}, type: pve, preset: vm-large, image: debian-13-pve{more and ', ' + more}"


def read(folder: Path, text: str) -> Manifest:
    write_site(folder)
    return find_manifest(Site.open(folder), ManifestRequest(text=text))


def problems(folder: Path, text: str) -> list[tuple[str, str]]:
    """Return the code of everything that is found, and what stands at its place."""
    with pytest.raises(InvalidInputError) as raised:
        read(folder, text)
    lines = [*text.splitlines(), ""]
    return [
        (found.kind.code, lines[(found.where.line or 1) - 1][(found.where.column or 1) - 1 :])
        for found in raised.value.diagnostics
        if found.where is not None
    ]


# What is wrong, as it is written: the code of the finding, and what stands at its place.
DEFECTS = {
    "an unknown type": (nodes("name: a, type: lxc"), "E-SITE-VALUE", "lxc"),
    "no type": (nodes("name: a"), "E-SITE-MISSING", "{name"),
    "no name": (nodes("type: vm"), "E-SITE-MISSING", "{type"),
    "a name that is no host name": (nodes(vm("a_b")), "E-SITE-VALUE", "a_b"),
    "a vmid that is too small": (nodes(vm("a", "vmid: 99")), "E-SITE-VALUE", "99}"),
    "a vmid below zero": (nodes(vm("a", "vmid: -1")), "E-SITE-VALUE", "-1"),
    "a disk as a text": (nodes(vm("a", "disk: big")), "E-SITE-VALUE", "big"),
    "no disk at all": (nodes(vm("a", "disk: 0")), "E-SITE-VALUE", "0}"),
    "an unknown mode": (nodes(vm("a", "execution: {mode: psh}")), "E-SITE-VALUE", "psh"),
    "an unknown key": (nodes(vm("a", "imag: x")), "E-SITE-KEY", "imag: x"),
    "an unknown setting": (nodes(vm("a")) + "settings: {onerror: stop}\n", "E-SITE-KEY", "onerror"),
    "an unknown way out of errors": (nodes(vm("a")) + "settings: {on_error: go}\n", "E-SITE-VALUE", "go"),
    "two nodes of one name": (nodes(vm("a"), vm("a")), "E-MANIFEST-NAME-TWICE", "a, type"),
    "a copy with the name of another": (
        nodes(vm("a", "count: 2"), vm("a-2")),
        "E-MANIFEST-NAME-TWICE",
        "a-2",
    ),
    "a parent that is not there": (nodes(vm("a", "parent: b")), "E-MANIFEST-REFERENCE", "b}"),
    "a parent that is a machine": (nodes(vm("a"), vm("b", "parent: a")), "E-MANIFEST-PARENT", "a}"),
    "a node inside of itself": (nodes(pve("a", "parent: a")), "E-MANIFEST-CYCLE", "{name: a"),
    "two nodes inside of each other": (
        nodes(pve("a", "parent: b"), pve("b", "parent: a")),
        "E-MANIFEST-CYCLE",
        "{name: a",
    ),
    "nodes that wait for each other": (
        nodes(vm("a", "depends_on: [b]"), vm("b", "depends_on: [a]")),
        "E-MANIFEST-CYCLE",
        "{name: a",
    ),
    "waiting for nobody": (nodes(vm("a", "depends_on: [x]")), "E-MANIFEST-REFERENCE", "x]"),
    "waiting for one at another depth": (
        nodes(pve("p"), vm("a", "parent: p, depends_on: [b]"), vm("b")),
        "E-MANIFEST-DEPENDS-ON",
        "b]",
    ),
    "copies of what others are inside of": (
        nodes(pve("p", "count: 2"), vm("a", "parent: p")),
        "E-MANIFEST-COUNT",
        "2}",
    ),
    "copies with one address": (nodes(vm("a", "count: 2, ip: 192.0.2.9/24")), "E-MANIFEST-COUNT", "2, ip"),
    "no copies": (nodes(vm("a", "count: 0")), "E-SITE-VALUE", "0}"),
    "a host and a parent": (nodes(pve("p"), vm("a", "parent: p, host: pve")), "E-MANIFEST-HOST", "pve}"),
    "a host that is not there": (nodes(vm("a", "host: gone")), "E-MANIFEST-NO-HOST", "gone"),
    "an unknown preset": (
        nodes("name: a, type: vm, preset: vm-huge, image: debian-12"),
        "E-SITE-REFERENCE",
        "vm-huge",
    ),
    "an unknown image": (nodes("name: a, type: vm, preset: vm-small, image: dos"), "E-SITE-IMAGE", "dos"),
    "an image of a machine for a container": (
        nodes("name: a, type: ct, preset: vm-small, image: debian-12"),
        "E-SITE-IMAGE",
        "debian-12",
    ),
    "an unknown spec": (nodes(vm("a", "spec: bas")), "E-SITE-REFERENCE", "bas"),
    "a node that does not say its size": (
        nodes("name: a, type: vm, image: debian-12"),
        "E-SITE-GUEST",
        "a, type",
    ),
    "one vmid for two": (nodes(vm("a", "vmid: 500"), vm("b", "vmid: 500")), "E-SITE-VMID-TWICE", "500}"),
    "one vmid for a copy and another": (
        nodes(vm("a", "vmid: 500, count: 2"), vm("b", "vmid: 501")),
        "E-SITE-VMID-TWICE",
        "501",
    ),
    "more inside than there is around": (
        nodes(pve("p"), *(vm(name, "parent: p, memory: 3000") for name in "abc")),
        "E-MANIFEST-CAPACITY",
        "{name: p",
    ),
    "no nodes": (HEAD + "nodes: []\n", "E-SITE-VALUE", "[]"),
    "no manifest": ("[]", "E-YAML-MAPPING", "[]"),
    "nothing": ("", "E-YAML-EMPTY", ""),
    "levels without a source": ("name: m\nlevels: [{name: a}]\n", "E-SITE-VALUE", "{name: a}"),
    "levels of an env that is not there": (
        "name: m\nlevels: [{name: a, env: gone}]\n",
        "E-MANIFEST-LEVEL",
        "gone",
    ),
    "levels with a scenario of their own": (
        "name: m\nlevels: [{name: a, vm_preset: small, image: debian-12, post_scenario: dance}]\n",
        "E-MANIFEST-LEVEL",
        "dance",
    ),
}


@pytest.mark.parametrize(("text", "code", "word"), DEFECTS.values(), ids=DEFECTS.keys())
def test_a_defect_is_found_at_its_place(tmp_path: Path, text: str, code: str, word: str) -> None:
    [(found, there)] = problems(tmp_path, text)
    assert (found, there[: len(word)]) == (code, word)


def test_every_defect_is_found_at_once(tmp_path: Path) -> None:
    text = nodes(vm("a", "vmid: 500"), vm("b", "vmid: 500, spec: gone"), vm("c", "host: gone"))
    assert {code for code, _ in problems(tmp_path, text)} == {
        "E-SITE-VMID-TWICE",
        "E-SITE-REFERENCE",
        "E-MANIFEST-NO-HOST",
    }


def test_a_container_cannot_fetch_its_own_spec(tmp_path: Path) -> None:
    text = nodes(
        "name: a, type: ct, cores: 1, memory: 512, disk: 4, image: debian-13-ct, execution: {mode: pull}"
    )
    assert "E-MANIFEST-PULL" in {code for code, _ in problems(tmp_path, text)}


def test_nodes_come_after_what_they_wait_for_and_go_before_it(tmp_path: Path) -> None:
    manifest = read(
        tmp_path,
        nodes(
            vm("edge", "parent: mid, vmid: 501"),
            vm("web", "depends_on: [db]"),
            pve("mid", SMALLER),
            pve("top"),
            vm("db"),
        ),
    )
    order = [node.name for node in manifest.create_order]
    assert order.index("top") < order.index("mid") < order.index("edge")
    assert order.index("db") < order.index("web")
    assert [node.name for node in manifest.destroy_order] == order[::-1]
    assert {node.name: manifest.depth(node.name) for node in manifest.nodes} == {
        "edge": 2,
        "web": 0,
        "mid": 1,
        "top": 0,
        "db": 0,
    }
    assert [node.name for node in manifest.up_to(1).nodes] == ["web", "top", "db"]
    assert [node.name for node in manifest.up_to(2).nodes] == ["web", "mid", "top", "db"]


def test_a_subtree_is_a_manifest_of_its_own_and_keeps_who_configures_guests(tmp_path: Path) -> None:
    head = HEAD + "execution: {default_mode: pull}\nsettings: {on_error: rollback}\n"
    manifest = read(
        tmp_path,
        nodes(
            pve("top"),
            pve("mid", SMALLER),
            vm("edge", "parent: mid"),
            vm("other"),
            head=head,
        ),
    )
    inside = manifest.subtree("top")
    assert (inside.name, [node.name for node in inside.roots]) == ("top-subtree", ["mid"])
    again = find_manifest(Site.open(tmp_path), ManifestRequest(text=json.dumps(inside.document())))
    assert [(node.name, node.parent, node.mode) for node in again.nodes] == [
        ("mid", None, "pull"),
        ("edge", "mid", "pull"),
    ]
    assert again.settings.on_error == "rollback"


def test_copies_are_nodes_of_their_own(tmp_path: Path) -> None:
    manifest = read(tmp_path, nodes(vm("web", "count: 3, vmid: 500"), vm("lb", "depends_on: [web]")))
    assert [(node.name, node.entry.get("vmid")) for node in manifest.nodes] == [
        ("web-1", 500),
        ("web-2", 501),
        ("web-3", 502),
        ("lb", None),
    ]
    assert manifest.by_name["lb"].depends_on == ("web-1", "web-2", "web-3")


def test_nodes_of_several_hosts_are_apart(tmp_path: Path) -> None:
    manifest = read(tmp_path, nodes(vm("a", "host: father, vmid: 500"), vm("b", "vmid: 500"))).on("pve")
    found = {scope.host: [node.name for node in nodes] for scope, nodes in manifest.scopes.items()}
    assert found == {"father": ["a"], "pve": ["b"]}


def test_what_nodes_say_reaches_the_model(tmp_path: Path) -> None:
    manifest = read(
        tmp_path, nodes(vm("a", "disk: 33, vmid: 500, tags: [x], depends_on: [b]"), vm("b", "spec: base"))
    )
    desired = build_scope(Site.open(tmp_path), manifest, Scope(), NODE)
    a = next(guest for guest in desired.vms if guest.name == "a")
    assert (a.vm_id, a.disks[0].size_gib, a.tags, a.depends_on) == (500, 33, ("x",), ("b",))


LEVELS = """\
name: old
description: nested
levels:
  - {name: top, vm_preset: large, image: debian-13-pve, vmid: 99011, post_scenario: pve-setup}
  - {name: leaf, template: test, vmid: 99021}
settings: {verify_ssh: false}
"""


def test_levels_become_nodes_that_mean_the_same(tmp_path: Path) -> None:
    manifest = read(tmp_path, LEVELS)
    assert [(node.name, node.type.value, node.parent) for node in manifest.nodes] == [
        ("top", "pve", None),
        ("leaf", "vm", "top"),
    ]
    assert manifest.nodes[0].entry["preset"] == "large"
    assert manifest.settings.verify_ssh is False
    again = find_manifest(Site.open(tmp_path), ManifestRequest(text=yaml.safe_dump(manifest.document())))
    assert again.document() == manifest.document()


def test_an_error_in_levels_is_shown_where_it_is_written(tmp_path: Path) -> None:
    text = "name: m\nlevels: [{name: a, vm_preset: small, image: nothing}]\n"
    assert problems(tmp_path, text) == [("E-SITE-IMAGE", "nothing}]")]


def test_a_text_comes_before_a_file_and_that_before_a_name(tmp_path: Path) -> None:
    site = Site.open(write_site(tmp_path))
    file = tmp_path / "other.yaml"
    file.write_text(nodes(vm("a")).replace("name: m", "name: file", 1))
    text = nodes(vm("a")).replace("name: m", "name: text", 1)
    every = ManifestRequest(name="n2-quick", file=str(file), text=text)
    assert find_manifest(site, every).name == "text"
    assert find_manifest(site, ManifestRequest(name="n2-quick", file=str(file))).name == "file"
    assert find_manifest(site, ManifestRequest()).name == "n2-quick"


def test_a_manifest_that_is_not_there_is_named_with_what_was_meant(tmp_path: Path) -> None:
    site = Site.open(write_site(tmp_path))
    with pytest.raises(ManifestNotFoundError, match="Did you mean `n2-quick`"):
        find_manifest(site, ManifestRequest(name="n2-quik"))
    empty = Site.open(write_site(tmp_path / "empty", {"site.yaml": "defaults: {}\n"}))
    with pytest.raises(UsageError, match="no default"):
        find_manifest(empty, ManifestRequest())


def test_pictures_show_what_is_inside_of_what_and_what_waits(tmp_path: Path) -> None:
    manifest = read(tmp_path, nodes(pve("p"), vm("a", "parent: p"), vm("b", "depends_on: [p]")))
    assert as_tree(manifest) == [
        "m",
        "  on the host that -H names",
        "    ├─ p (pve, vm-large, debian-13-pve)",
        "    │  └─ a (vm, vm-small, debian-12)",
        "    └─ b (vm, vm-small, debian-12, after p)",
    ]
    assert as_mermaid(manifest) == [
        "flowchart TB",
        '  subgraph n0["p (pve)"]',
        '    n1["a (vm)"]',
        "  end",
        '  n2["b (vm)"]',
        "  n0 --> n2",
    ]
    assert '  "p" -> "b" [style=dashed];' in as_dot(manifest)


def test_a_thousand_nodes_are_read(tmp_path: Path) -> None:
    manifest = read(tmp_path, nodes(vm("web", "count: 1000, vmid: 1000")))
    assert len(manifest.create_order) == 1000
