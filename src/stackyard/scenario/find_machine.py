"""From what the user says to the machine that is meant: this one, an address, or a name of the site."""

from __future__ import annotations

import dataclasses
import ipaddress
import os
import re
import shutil
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import UsageError
from stackyard.base.redaction import NOTHING_SECRET
from stackyard.clients import ssh
from stackyard.clients.ssh.user_keys import user_keys
from stackyard.path.ssh_login import AGENT_VARIABLE, key_files, known_hosts, node_host
from stackyard.scenario.failures import RootNeededError
from stackyard.scenario.machines import Local, Remote
from stackyard.scenario.model import RunLocation
from stackyard.sources.site.hosts import DEFAULT_SSH_USER, resolve_host

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.base.redaction import Redactor
    from stackyard.scenario.machines import Machine
    from stackyard.scenario.model import Scenario
    from stackyard.scenario.options import ScenarioOptions
    from stackyard.sources.site.load import Site

__all__ = ["FoundMachine", "find_machine"]

_ADDRESS = re.compile(r"(?:(?P<user>[^@:\s]+)@)?(?P<address>\[[^\]]+\]|[^@:\s]+)(?::(?P<port>\d{1,5}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMachine:
    """A machine, and what the site calls it, where that is known."""

    machine: Machine
    name: str | None


def find_machine(scenario: Scenario, options: ScenarioOptions, site: Site | None) -> FoundMachine:
    """Return the machine that a scenario is to run on.

    Raises:
        UsageError: Nothing is said, too much, or something that does not fit the scenario.
        HostNotFoundError: The site has no such machine.
        RootNeededError: It is this machine, and we cannot become root.
    """
    said = [word for word in (options.local and "--local", options.remote and "--remote") if word]
    if options.host is not None and options.remote is not None:
        said.append("--host")
    if len(said) > 1:
        raise UsageError(f"{' and '.join(said)} do not go together: say where it is to run once.")
    redactor = NOTHING_SECRET if site is None else site.redactor()
    if options.local:
        return _here(scenario, options, redactor)
    if options.remote is not None:
        return FoundMachine(machine=_at(options.remote, options, site, redactor), name=None)
    if options.host is None:
        where = "--remote ADDRESS or -H NAME"
        raise UsageError(
            f"`{scenario.name}` runs on {scenario.place.value}, and nothing says on which.",
            remedy=f"Say {where if scenario.place is not RunLocation.ANY else f'--local, {where}'}.",
        )
    return _find_named(options.host, options, site, redactor)


def _here(scenario: Scenario, options: ScenarioOptions, redactor: Redactor) -> FoundMachine:
    if scenario.place is not RunLocation.ANY:
        raise UsageError(f"`{scenario.name}` runs on {scenario.place.value}, not with --local.")
    if scenario.needs_root and os.geteuid() != 0 and shutil.which("sudo") is None:
        raise RootNeededError(f"`{scenario.name}` changes this machine, and there is no sudo.")
    name = options.host or socket.gethostname().partition(".")[0]
    return FoundMachine(machine=Local(redactor), name=name)


def _find_named(host: str, options: ScenarioOptions, site: Site | None, redactor: Redactor) -> FoundMachine:
    is_address = "@" in host or _is_address(host)
    if site is None or (is_address and host not in {*site.nodes, *site.hosts}):
        return FoundMachine(machine=_at(host, options, site, redactor), name=None)
    where = node_host(site, resolve_host(site, host))
    if options.identity is not None:
        where = dataclasses.replace(where, key_files=_key_files(options, site))
    return FoundMachine(machine=Remote(where, redactor), name=host)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return False
    return True


def _at(text: str, options: ScenarioOptions, site: Site | None, redactor: Redactor) -> Remote:
    # An address of IPv6 without brackets has colons that do not begin a port.
    match = _ADDRESS.fullmatch(f"[{text}]" if _is_address(text) and ":" in text else text)
    if match is None or int(match["port"] or 22) not in range(1, 65536):
        raise UsageError(f"`{text}` is no machine: it should be [USER@]ADDRESS[:PORT].")
    defaults = None if site is None else site.settings.defaults
    user = None if defaults is None else defaults.ssh_user or defaults.host_user
    where = ssh.Host(
        address=match["address"].strip("[]"),
        port=int(match["port"] or 22),
        username=match["user"] or user or DEFAULT_SSH_USER,
        key_files=_key_files(options, site),
        agent_socket=os.environ.get(AGENT_VARIABLE),
        known_hosts=None if site is None else known_hosts(site),
        openssh=ssh.OpenSsh(has_user=bool(match["user"] or user), has_port=match["port"] is not None),
    )
    return Remote(where, redactor)


def _key_files(options: ScenarioOptions, site: Site | None) -> tuple[Path, ...]:
    if options.identity is not None:
        if not options.identity.is_file():
            raise UsageError(f"--identity names {options.identity}, which is no file.")
        return (options.identity,)
    return user_keys() if site is None else key_files(site)
