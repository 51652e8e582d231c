"""How machines of a site are reached over SSH: with which keys, and through which node."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import directories
from stackyard.clients.ssh.host import Host, OpenSsh
from stackyard.clients.ssh.user_keys import user_keys
from stackyard.path.ssh_files import KNOWN_HOSTS, fetch_ssh_files
from stackyard.sources.site.pull import OWN_KEY_FILE

if TYPE_CHECKING:
    from stackyard.sources.site.hosts import HostConfig
    from stackyard.sources.site.load import Site

__all__ = ["AGENT_VARIABLE", "jump_of", "key_files", "known_hosts", "named_key_file", "node_host"]

AGENT_VARIABLE = "SSH_AUTH_SOCK"


def key_files(site: Site) -> tuple[Path, ...]:
    """Return the files of private keys to log in with: the one that the site names, else those there are.

    Those are the key that was made with the site, and the user's own. They are read here and go nowhere.
    """
    named = named_key_file(site)
    if named is not None:
        return (named,)
    fetch_ssh_files(site.store)
    own = site.root / OWN_KEY_FILE
    return (*((own,) if own.is_file() else ()), *user_keys())


def named_key_file(site: Site) -> Path | None:
    """Return the private key that the site names, None where it names none."""
    said = site.settings.defaults.ssh_key_file
    return None if said is None else site.root / Path(said).expanduser()


def known_hosts(site: Site) -> Path:
    """Return the file that remembers the host keys of a site's machines."""
    fetch_ssh_files(site.store)
    return site.root / directories.PROJECT_FOLDER / KNOWN_HOSTS


def node_host(site: Site, node: HostConfig) -> Host:
    """Return the SSH of a node itself: the one login that checks, runs and the provider use."""
    return Host(
        address=node.ssh_host,
        port=node.ssh_port,
        username=node.ssh_user,
        password=site.secret_values.passwords.get(f"node_{node.name}"),
        key_files=key_files(site),
        agent_socket=os.environ.get(AGENT_VARIABLE),
        known_hosts=known_hosts(site),
        openssh=OpenSsh(name=node.name, has_user=node.has_ssh_user, has_port=node.has_ssh_port),
    )


def jump_of(site: Site, node: HostConfig) -> Host | None:
    """Return the machine through which guests of a node are reached; None where that is done directly."""
    return node_host(site, node) if node.ssh_jump else None
