"""The entries of imported guests say exactly what is there, whatever the site says for new ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.site import write_site

from stackyard.base.errors import InvalidInputError, UsageError
from stackyard.path.importing.configuration import TranslatedGuest
from stackyard.path.importing.container import translate_container
from stackyard.path.importing.env_file import EnvWriter
from stackyard.path.importing.vm import translate_vm
from stackyard.sources.site import ConfigResolver

VM = {
    "name": "web",
    "memory": "1024",
    "cores": 2,
    "cpu": "host",
    "ostype": "l26",
    "scsi0": "local-lvm:vm-700-disk-0,size=8G",
    "net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0",
    "ide2": "local-lvm:vm-700-cloudinit,media=cdrom",
    "ipconfig0": "ip=10.0.12.7/24",
}
CT = {
    "hostname": "dns",
    "memory": 512,
    "swap": 512,
    "cores": 1,
    "ostype": "debian",
    "rootfs": "local-lvm:vm-701-disk-0,size=4G",
    "net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:02,ip=10.0.12.8/24",
}
# A site that has something to say for every new guest: keys, a password, a gateway, name servers.
SITE = """\
defaults:
  timezone: America/Denver
  domain: example.com
  gateway: 10.0.12.1
  dns_servers: [10.0.12.1]
  packages: [htop]
"""


def found(vm_id: int = 700, node: str = "father", **more: Any) -> TranslatedGuest:
    row = {"vmid": vm_id, "node": node, "status": "running"}
    return translate_vm(row, {**VM, **more})


def found_ct(vm_id: int = 701, node: str = "father", **more: Any) -> TranslatedGuest:
    row = {"vmid": vm_id, "node": node, "status": "running"}
    return translate_container(row, {**CT, **more})


def writer(root: Path, env: str = "home") -> EnvWriter:
    write_site(root, site=SITE)
    return EnvWriter.of(ConfigResolver(root), env, "father")


def test_nothing_that_the_site_says_for_new_guests_reaches_imported_ones(tmp_path: Path) -> None:
    written = writer(tmp_path).write([found(), found_ct()])
    web, dns = written.resolved.desired.guests
    assert (web, dns) == written.guests
    assert (web.dns, web.nics[0].gateway4, dns.dns, dns.nics[0].gateway4) == (None, None, None, None)
    assert written.text.before is None
    assert not written.text.path.exists()
    document = yaml.safe_load(written.text.after)
    assert document["node"] == "father"
    assert [entry["name"] for entry in document["vms"]] == ["web", "dns"]
    assert all("node" not in entry for entry in document["vms"])


def test_entries_are_added_to_what_is_there(tmp_path: Path) -> None:
    write_site(tmp_path)
    text = (tmp_path / "envs" / "dev.yaml").read_text()
    written = EnvWriter.of(ConfigResolver(tmp_path), "dev", "father").write([found()])
    assert written.text.before == text
    assert written.text.after.startswith(text.rstrip("\n"))
    assert [entry["vmid"] for entry in written.entries.values()] == [700]


def test_what_the_site_has_no_place_for_is_said_of_every_guest_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError) as raised:
        writer(tmp_path).write([found(node="elsewhere"), found(702), found_ct(audio0="x")])
    details = [one.detail for one in raised.value.diagnostics]
    keys = [detail.partition(": `")[2].partition("`")[0] for detail in details]
    assert keys == ["audio0", "node", "name"]
    assert "write nodes/elsewhere.yaml" in details[1]


@pytest.mark.parametrize("name", ["../../home", "a/b", "", ".hidden"])
def test_a_new_env_has_a_name_that_is_one(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        writer(tmp_path, name)


def test_a_name_that_the_env_has_already_is_said(tmp_path: Path) -> None:
    write_site(tmp_path)
    resolver = ConfigResolver(tmp_path)
    taken = resolver.site.guests("dev")[0].name
    with pytest.raises(InvalidInputError) as raised:
        EnvWriter.of(resolver, "dev", "father").write([found(name=taken)])
    assert f"another {taken}" in raised.value.diagnostics[0].detail


def test_words_for_ipv6_stay_words_for_ipv6(tmp_path: Path) -> None:
    first = found_ct(net0="name=eth0,bridge=vmbr0,ip6=manual")
    second = found_ct(702, hostname="b", net0="name=eth0,bridge=vmbr0,ip6=dhcp")
    written = writer(tmp_path).write([first, second])
    assert [(guest.nics[0].ipv4, guest.nics[0].ipv6) for guest in written.resolved.desired.guests] == [
        (None, "manual"),
        (None, "dhcp"),
    ]
