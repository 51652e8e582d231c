"""`stackyard manifest` as a user runs it, and manifests as targets of the path."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.support.cli import stackyard
from tests.support.engine import real_engine
from tests.support.path import make_yard
from tests.support.site import write_site

from stackyard import lab
from stackyard.engine.version import Flavour

LEVELS = """\
name: old
levels:
  - {name: top, vm_preset: large, image: debian-13-pve}
  - {name: leaf, template: test}
"""
BAD = """\
schema_version: 2
name: bad
nodes:
  - {name: a, type: vm, preset: vm-small, image: dos, parent: b}
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write_site(tmp_path / "site")


def test_manifests_are_listed_checked_and_drawn(site: Path) -> None:
    assert stackyard("manifest", "list", "--json", cwd=site).document["manifests"] == ["n2-quick"]
    assert "n2-quick: 2 nodes, valid." in stackyard("manifest", "validate", cwd=site).stdout
    drawn = stackyard("manifest", "graph", "n2-quick", "--json", cwd=site).document
    assert drawn["create_order"] == ["root-pve", "edge"]
    for form, word in (("tree", "└─ edge"), ("mermaid", "flowchart TB"), ("dot", "digraph")):
        assert word in stackyard("manifest", "graph", "n2-quick", "--format", form, cwd=site).stdout


def test_a_wrong_manifest_is_refused_by_both_commands_with_its_place(site: Path) -> None:
    (site / "manifests" / "bad.yaml").write_text(BAD)
    for command in (("manifest", "validate", "bad"), ("site", "validate")):
        ended = stackyard(*command, cwd=site)
        assert ended.status == 65
        assert "manifests/bad.yaml:4:63" in ended.stdout + ended.stderr
        assert "E-MANIFEST-REFERENCE" in ended.stdout + ended.stderr
    assert stackyard("manifest", "validate", "n2-quick", cwd=site).status == 0
    assert stackyard("manifest", "validate", "gone", cwd=site).status == 65


def test_an_old_manifest_is_written_anew_and_means_the_same(site: Path) -> None:
    (site / "manifests" / "old.yaml").write_text(LEVELS)
    ended = stackyard("manifest", "convert", "old", "--out", "manifests/new.yaml", cwd=site)
    assert ended.status == 0, ended
    written = yaml.safe_load((site / "manifests" / "new.yaml").read_text())
    assert [(node["name"], node["type"]) for node in written["nodes"]] == [("top", "pve"), ("leaf", "vm")]
    old, new = (
        stackyard("manifest", "graph", name, "--json", cwd=site).document["nodes"] for name in ("old", "new")
    )
    assert old == new


@pytest.mark.tofu
@pytest.mark.timeout(300)
def test_what_a_manifest_has_on_a_host_is_a_target_with_a_state_of_its_own(tmp_path: Path) -> None:
    engine = real_engine(Flavour.TOFU)
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        yard = make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(engine.path))
        planned = yard.json("plan", "manifest:n2-quick", "-H", "lab")
        assert planned["state"] == "manifest/n2-quick/lab"
        applied = yard.json("apply", "manifest:n1-basic", "-H", "lab", "--no-verify")
        assert applied["state"] == "manifest/n1-basic/lab"
        assert yard.json("plan", "n1-basic", "-H", "lab")["has_changes"] is False
        assert set(yard.guests()) == {99001}
