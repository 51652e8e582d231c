"""A host is a node of Proxmox, or else a machine that is reached by SSH alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.site import TOKEN, write_site

from stackyard.base.errors import InvalidInputError
from stackyard.sources.site import ConfigResolver, Site
from stackyard.sources.site.hosts import HostNotFoundError, resolve_host

SITE = "defaults: {host_user: root, vm_user: ops, server_url: 'https://c:44443'}\n"


def test_the_worked_example_of_a_node_comes_out_as_stated(tmp_path: Path) -> None:
    node = "api_endpoint: https://198.51.100.61:8006\napi_token: k1\nhost_user: admin\ndatastore: local\n"
    secrets = f"api_tokens: {{k1: '{TOKEN}'}}\n"
    files = {"site.yaml": SITE, "nodes/srv1.yaml": node, "secrets.yaml": secrets}
    host = ConfigResolver(write_site(tmp_path, files)).resolve_host("srv1")
    assert (host.ssh_host, host.ssh_user, host.automation_user) == ("198.51.100.61", "admin", "ops")
    assert (host.api_token, host.spec_server, host.is_host_only) == (TOKEN, "https://c:44443", False)
    assert TOKEN not in repr(host) + str(host.document())


def test_the_worked_example_of_a_machine_without_an_api_comes_out_as_stated(tmp_path: Path) -> None:
    machine = """\
network: {interfaces: {vmbr0: {address: 198.51.100.7/24}}}
access: {host_user: deb, ssh_port: 2222}
"""
    host = ConfigResolver(write_site(tmp_path, {"site.yaml": SITE, "hosts/new.yaml": machine})).resolve_host(
        "new"
    )
    assert (host.ssh_host, host.ssh_user, host.ssh_port) == ("198.51.100.7", "deb", 2222)
    assert host.is_host_only
    assert (host.api_endpoint, host.api_token) == ("", "")


def test_a_node_goes_before_a_machine_of_the_same_name(tmp_path: Path) -> None:
    assert not ConfigResolver(write_site(tmp_path)).resolve_host("father").is_host_only


def test_a_machine_with_access_and_without_a_user_has_the_sites(tmp_path: Path) -> None:
    files = {
        "site.yaml": "defaults: {ssh_user: ops}\n",
        "hosts/a.yaml": "ip: 192.0.2.1\naccess: {ssh_port: 22}\n",
    }
    assert ConfigResolver(write_site(tmp_path, files)).resolve_host("a").ssh_user == "ops"


def test_the_port_of_the_machine_counts_for_its_node(tmp_path: Path) -> None:
    machine = "ip: 10.0.12.61\naccess: {ssh_port: 2200}\n"
    assert ConfigResolver(write_site(tmp_path, hosts__father=machine)).resolve_host("father").ssh_port == 2200


def test_a_host_that_is_nowhere_is_an_error_with_both_places_and_a_hint(tmp_path: Path) -> None:
    with pytest.raises(HostNotFoundError, match=r"nodes/fahter\.yaml.*hosts/fahter\.yaml.*`father`"):
        ConfigResolver(write_site(tmp_path)).resolve_host("fahter")


def test_a_node_whose_file_is_wrong_is_not_replaced_by_its_machine(tmp_path: Path) -> None:
    site = Site.open(write_site(tmp_path, nodes__father="api_endpoint: nowhere\n"))
    with pytest.raises(InvalidInputError, match="father"):
        resolve_host(site, "father")
