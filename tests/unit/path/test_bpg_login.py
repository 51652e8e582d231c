"""The login of bpg's provider: OpenSSH's settings reach its block, and what cannot is a warning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stackyard.base.redaction import Redactor
from stackyard.clients.proxmox import Connection, Token
from stackyard.clients.ssh.host import Host, OpenSsh
from stackyard.desired import Desired, Secrets
from stackyard.guard.implied import ImpliedCalls
from stackyard.path.bpg_login import find_unlike_logins, with_bpg_logins
from stackyard.path.provider_environment import provider_block
from stackyard.path.target import Resolved, SshAccess, Target

NODES = {"pve1": "192.0.2.1", "pve2": "192.0.2.2"}
SNIPPET = {"kind": "snippet", "key": "web/user", "node": "pve1", "file_name": "web.yaml", "content": "x"}
ROOT = {"datastore": "local-lvm", "size_gib": 4}
DISK = {"interface": "scsi0", "datastore": "local-lvm", "size_gib": 4}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".ssh").mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def settings(home: Path, text: str) -> None:
    path = home / ".ssh" / "config"
    path.write_text(text)
    path.chmod(0o600)


def access(*, is_said: bool = False) -> SshAccess:
    """Return the logins of nodes of which the site says nothing, or everything."""
    logins = {
        name: Host(address=address, openssh=OpenSsh(name=name, has_user=is_said, has_port=is_said))
        for name, address in NODES.items()
    }
    nodes = tuple((name, address, 22) for name, address in NODES.items())
    return SshAccess(user="root", nodes=nodes, logins=logins, other=logins["pve1"])


def resolved(ssh: SshAccess | None) -> Resolved:
    return with_bpg_logins(
        Resolved(
            target=Target(kind="env", name="t", node="pve1"),
            desired=Desired(),
            secrets=Secrets(),
            connection=Connection(endpoint="https://192.0.2.1:8006/", credentials=Token(text="a@pve!b=cdef")),
            redactor=Redactor(),
            ssh=ssh,
        )
    )


def warned(ssh: SshAccess | None, *files: dict[str, Any], **guest: Any) -> list[str]:
    kind = "containers" if "id_maps" in guest else "vms"
    one = {"key": "web", "name": "web", "node": "pve1", "vm_id": 100, **guest}
    desired = Desired.model_validate({kind: [one], "files": list(files)})
    implied = ImpliedCalls(
        desired=desired, created=frozenset(("web",)), files=frozenset(file["key"] for file in files)
    )
    found = list(find_unlike_logins(implied, resolved(ssh).ssh))
    assert {finding.label for finding in found} <= {"web"}
    return [finding.detail for finding in found]


def test_the_user_and_ports_of_the_settings_are_in_the_block(home: Path) -> None:
    settings(home, "Host pve1\n  HostName 192.0.2.1\n  Port 2201\nHost 192.0.2.*\n  User ops\n  Port 2200\n")
    block = provider_block(resolved(access()))
    assert (block.ssh_user, block.ssh_nodes) == (
        "ops",
        (("pve1", "192.0.2.1", 2201), ("pve2", "192.0.2.2", 2200)),
    )


def test_what_the_site_says_counts_before_the_settings_and_no_settings_change_nothing(home: Path) -> None:
    plain = provider_block(resolved(access()))
    assert (plain.ssh_user, plain.ssh_nodes) == ("root", access().nodes)
    settings(home, "Host *\n  User ops\n  Port 2200\n")
    assert provider_block(resolved(access(is_said=True))) == plain
    assert provider_block(resolved(None)).ssh_user is None


def test_a_way_that_the_provider_does_not_know_is_a_warning_where_a_plan_logs_in(home: Path) -> None:
    assert warned(access(), SNIPPET) == []
    settings(home, "Host 192.0.2.1\n  ProxyJump bastion\nHost 192.0.2.2\n  User other\n")
    (said,) = warned(access(), SNIPPET)
    assert said.startswith("pve1 is logged in to for the snippet web.yaml, and `ProxyJump` leads through ")
    assert said.endswith("bpg's provider connects to 192.0.2.1 directly.")
    (said,) = warned(access(), node="pve2", disks=[{**DISK, "file": "local:iso/a.img"}])
    assert said == (
        "pve2 is logged in to for the disk of web, and its user is other: bpg's provider has one for all "
        "nodes, root."
    )
    maps = [{"type": "uid", "container_id": 0, "host_id": 100000, "size": 1000}]
    (said,) = warned(access(), id_maps=maps, template="local:vztmpl/a.tar.zst", root_disk=ROOT)
    assert "the id maps of web" in said
    settings(home, "Host 192.0.2.1\n  ProxyCommand nc %h %p\n")
    assert "`ProxyCommand` leads there" in warned(access(), SNIPPET)[0]
    # What goes through the API alone, and what is written already, needs no login.
    assert warned(access(), disks=[{**DISK, "file": "local:import/a.qcow2"}]) == []
    assert warned(access()) == []
    assert warned(None, SNIPPET) == []
