"""A site to start with can log in to its guests, whether its user has an SSH key or not."""

from __future__ import annotations

import stat
from pathlib import Path

import asyncssh

from stackyard.path.ssh_login import key_files
from stackyard.sources.site.load import Site
from stackyard.sources.site.new_site import LabAccess, start_site
from stackyard.sources.site.pull import OWN_KEY_FILE

LAB = LabAccess(
    url="https://127.0.0.1:8006",
    fingerprint=":".join(["AB"] * 32),
    api_token="root@pam!lab=00000000-0000-0000-0000-000000000000",
    password="password",
    nodes=("pve1",),
    ssh_ports=(8022,),
)


def test_a_user_without_a_key_gets_one_that_stays_on_this_machine(tmp_path: Path) -> None:
    started = start_site(tmp_path / "site", LAB)
    path = tmp_path / "site" / OWN_KEY_FILE
    assert started.ssh_key == path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert str(OWN_KEY_FILE) not in started.files
    site = Site.load(tmp_path / "site")
    public = asyncssh.read_private_key(path).export_public_key().decode().split()[:2]
    assert [line.split()[:2] for line in site.secret_values.ssh_keys.values()] == [public]
    assert key_files(site) == (path,)
    assert site.nodes["lab"].model.ssh_jump


def test_the_keys_of_a_user_who_has_some_are_enough(tmp_path: Path, home: Path) -> None:
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_ed25519").write_text("mine")
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMockMockMockMockMockMockMockMockMockMockMoc1 one"
    started = start_site(tmp_path / "site", LAB, ssh_keys=[("mine", key)])
    assert started.ssh_key is None
    site = Site.load(tmp_path / "site")
    assert site.secret_values.ssh_keys == {"mine": key}
    assert key_files(site) == (home / ".ssh" / "id_ed25519",)
