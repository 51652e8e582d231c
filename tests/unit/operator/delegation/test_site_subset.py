"""The part of a site that goes to an inner host, and the time that a run there may take."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from stackyard.operator.delegation.children_needs import bridges_of, images_of
from stackyard.operator.delegation.delegate import time_for
from stackyard.operator.delegation.site_subset import InnerNode, as_tar, site_files
from stackyard.sources.manifest.model import Manifest
from stackyard.sources.manifest.read import ManifestRequest, find_manifest
from stackyard.sources.site.load import Site

FILES = {
    "site.yaml": "defaults: {domain: a.test, ssh_user: admin, spec_server: 'https://c.test:44443'}\n"
    "images: {base: {volume: 'local:import/base.qcow2'}, fetched: {url: 'https://i.test/x.qcow2'}}\n",
    "nodes/pve1.yaml": "api_endpoint: https://pve1.test:8006\ndatastore: zfs\n",
    "presets/small.yaml": "cores: 1\nmemory: 512\ndisk: 4\n",
    "presets/other.yaml": "cores: 1\nmemory: 512\ndisk: 4\n",
    "vms/web.yaml": "preset: small\nimage: base\nspec: web\n",
    "specs/web.yaml": "schema_version: 1\naccess: {posture: hard}\n",
    "specs/other.yaml": "schema_version: 1\n",
    "postures/dev.yaml": "auth: {method: network}\n",
    "postures/hard.yaml": "auth: {method: node_token}\n",
    "postures/other.yaml": "auth: {method: network}\n",
    "secrets.yaml": "api_tokens: {pve1: 'root@pam!t=outer'}\npasswords: {vm_root: hash, node_pve1: outer}\n"
    "ssh_keys: {me: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBtSBZxfB5SH0crJtC802BI4xwIRtWU8aUXy+u32Pl5A}\n"
    "auth: {signing_key: '" + "cd" * 32 + "', node_tokens: {leaf: leaf-token, stranger: stranger-token}}\n",
}
HOST = {
    "name": "inner",
    "type": "pve",
    "preset": "small",
    "cores": 4,
    "memory": 9000,
    "disk": 90,
    "image": "base",
}
NODE = InnerNode(
    name="inner",
    proxmox_name="inner",
    address="10.0.0.5",
    fingerprint=":".join(["AB"] * 32),
    datastore="local-lvm",
    file_datastore="local",
    public_key="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBtSBZxfB5SH0crJtC802BI4xwIRtWU8aUXy+u32Pl5A inner",
    token="stackyard@pve!operator=inner-token",
)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return Site.load(tmp_path)


def subtree(site: Site, *nodes: dict[str, Any], **settings: Any) -> Manifest:
    document = {"schema_version": 2, "name": "m", "nodes": [HOST, *nodes], "settings": settings}
    return find_manifest(site, ManifestRequest(text=json.dumps(document))).subtree("inner")


LEAF = {"name": "leaf", "type": "vm", "parent": "inner", "template": "web"}
PLAIN = {"name": "plain", "type": "vm", "parent": "inner", "preset": "small", "image": "base"}


def test_only_files_that_the_subtree_refers_to_are_in_it_and_they_are_a_site(
    site: Site, tmp_path: Path
) -> None:
    files = site_files(site, subtree(site, LEAF, PLAIN), NODE)
    assert set(files) == {
        "site.yaml",
        "secrets.yaml",
        "nodes/inner.yaml",
        "presets/small.yaml",
        "vms/web.yaml",
        "specs/web.yaml",
        "postures/dev.yaml",
        "postures/hard.yaml",
    }
    (tmp_path / "inner").mkdir()
    # With the program that unpacks it on the inner host.
    subprocess.run(["tar", "-xof", "-"], input=as_tar(files), cwd=tmp_path / "inner", check=True, timeout=60)
    inner = Site.load(tmp_path / "inner")
    assert list(inner.nodes) == ["inner"]
    assert inner.settings.defaults.domain == "a.test"
    assert inner.settings.defaults.spec_server is None
    assert inner.settings.defaults.ssh_key_file == "/var/lib/stackyard/key"


def test_secrets_are_those_of_guests_of_the_subtree_and_the_token_of_the_host_itself(site: Site) -> None:
    files = site_files(site, subtree(site, LEAF), NODE)
    secrets = yaml.safe_load(files["secrets.yaml"])
    assert secrets["api_tokens"] == {"inner": NODE.token}
    assert secrets["passwords"] == {"vm_root": "hash"}
    assert set(secrets["ssh_keys"]) == {"me", "stackyard-inner"}
    assert secrets["auth"] == {"node_tokens": {"leaf": "leaf-token"}}


def test_the_same_files_give_the_same_bytes(site: Site) -> None:
    files = site_files(site, subtree(site, LEAF), NODE)
    assert as_tar(files) == as_tar(dict(reversed(files.items())))


def test_an_image_is_copied_once_for_all_that_use_it_and_one_with_an_address_is_not(site: Site) -> None:
    fetched = {**PLAIN, "name": "fetched", "image": "fetched"}
    assert images_of(site, subtree(site, LEAF, PLAIN, fetched)) == ("local:import/base.qcow2",)


def test_bridges_are_those_of_the_children_alone(site: Site) -> None:
    bridged = {**PLAIN, "name": "bridged", "bridge": "vmbr7"}
    assert bridges_of(site, subtree(site, PLAIN, bridged)) == ("vmbr0", "vmbr7")


def test_time_grows_with_the_longest_chain_and_not_with_the_number_of_nodes(site: Site) -> None:
    one = time_for(subtree(site, PLAIN))
    four = time_for(subtree(site, *({**PLAIN, "name": f"n{number}"} for number in range(4))))
    chained = time_for(subtree(site, PLAIN, {**PLAIN, "name": "after", "depends_on": ["plain"]}))
    assert one == four
    assert chained > 1.5 * one
    assert time_for(subtree(site, PLAIN, timeout_buffer=1060)) == pytest.approx(one + 1000)
