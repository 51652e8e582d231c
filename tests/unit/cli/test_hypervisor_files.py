"""Which files `apply hypervisor:NAME --all` applies, and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.site import write_site

from stackyard.base.errors import UsageError
from stackyard.cli.runs.hypervisors import list_files
from stackyard.sources.site import Site

NODE = "api_endpoint: https://192.0.2.{0}:8006\ndatastore: local\nnode: pve{0}\n"
FILES = {
    "site.yaml": "{}\n",
    "secrets.yaml": "api_tokens:\n  one: a@pve!b=cdef\n",
    **{f"nodes/{name}.yaml": NODE.format(number) for number, name in enumerate(("one", "two", "far"), 1)},
    "hypervisors/home.yaml": "api: one\npools: {apps: {}}\n",
    "hypervisors/away.yaml": "api: far\npools: {apps: {}}\n",
    "hypervisors/first.yaml": "node: pve1\ndns: {domain: home.example}\n",
    "hypervisors/third.yaml": "node: pve3\ndns: {domain: away.example}\n",
}
ZONES = "api: one\nsdn:\n  zones: {lan: {type: vlan, bridge: vmbr1}}\n"


def load(folder: Path, **files: str) -> Site:
    changed = {f"hypervisors/{name}.yaml": text for name, text in files.items()}
    return Site.load(write_site(folder, {**FILES, **changed}))


def test_a_cluster_comes_before_its_own_nodes(tmp_path: Path) -> None:
    site = load(tmp_path)
    assert list_files(site, "home") == ("home", "first")
    assert list_files(site, "away") == ("away", "third")


def test_bridges_come_before_the_zones_that_lie_on_them(tmp_path: Path) -> None:
    assert list_files(load(tmp_path, home=ZONES), "home") == ("first", "home")


def test_a_node_is_no_cluster(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--all is for the file of a cluster"):
        list_files(load(tmp_path), "first")
