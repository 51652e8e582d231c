"""The machine behind the host: its SSH, and whether it can run virtual machines inside virtual machines."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostics
from stackyard.base.errors import StackyardError
from stackyard.clients.proxmox import quote
from stackyard.desired import Snippet, Vm
from stackyard.operator.preflight import kinds
from stackyard.operator.preflight.api import is_link_local
from stackyard.operator.preflight.model import Observation
from stackyard.operator.preflight.subject import Purpose
from stackyard.path.ssh_login import node_host

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.clients import ssh
    from stackyard.operator.preflight.reachable_host import ReachableHost
    from stackyard.operator.preflight.subject import PreflightSubject

__all__ = ["check_nested", "check_ssh", "check_ssh_alone"]

_CONNECT_S = 8.0
_PARAMETERS = "cat /sys/module/kvm_intel/parameters/nested /sys/module/kvm_amd/parameters/nested 2>/dev/null"
# A lab says what its guests are made of; a real node has no such program.
_LAB_GUESTS = "lab-guests 2>/dev/null"
_RUNS_NOTHING = "recorded"
_ON = frozenset(("Y", "1"))
_VIRTUALISATION = frozenset(("vmx", "svm"))


class _NoLoginError(Exception):
    """Nothing is known with which one could log in."""


@contextlib.asynccontextmanager
async def _shell(subject: PreflightSubject) -> AsyncIterator[ssh.Shell]:
    """Log in to a host.

    Raises:
        _NoLoginError: There is nothing to log in with.
        SshConfigError: The settings of OpenSSH cannot be read.
        SshUnreachableError: It does not answer or does not accept the login.
    """
    from stackyard.clients import ssh  # lazy: asyncssh costs half a second, and few preflights need it

    host = ssh.resolve_login(node_host(subject.site, subject.host))
    if host.password is None and not host.agent_socket and not host.key_files:
        raise _NoLoginError
    async with ssh.connect(dataclasses.replace(host, connect_s=_CONNECT_S)) as shell:
        yield shell


async def check_ssh(reachable: ReachableHost) -> Observation:
    """Check the login to the host, which snippets and nodes inside of it need, and the guests of a lab."""
    has_snippets = any(isinstance(file, Snippet) for file in reachable.desired.files)
    return await _check_login(reachable.subject, is_needed=has_snippets or bool(reachable.subject.inner))


async def check_ssh_alone(subject: PreflightSubject) -> Observation:
    """Check the login to a machine that has no API."""
    return await _check_login(subject, is_needed=True)


async def _check_login(subject: PreflightSubject, *, is_needed: bool) -> Observation:
    found = Diagnostics()
    host, kind = subject.host, kinds.SSH if is_needed else kinds.SSH_ADVISED
    try:
        async with _shell(subject) as shell:
            if is_needed and shell.host.username != "root":
                await shell.run("sudo -n true", timeout_s=_CONNECT_S)
            await _check_own_name(shell, host.name, found)
            # Of nodes inside of guests the check `nested` says the same.
            if subject.configured and not subject.inner and subject.purpose is Purpose.CREATE:
                await _check_lab(shell, subject.configured, found)
            return Observation(text=f"logged in as {shell.host}", findings=tuple(found))
    except _NoLoginError:
        if not is_needed:
            return Observation(text="not set up, not needed")
        found.add(kind, _describe_missing_login(host.name))
        return Observation(text="no login", findings=tuple(found))
    except StackyardError as err:
        found.add(kind, err.detail)
        return Observation(text="no login", findings=tuple(found))


async def _check_own_name(shell: ssh.Shell, host: str, found: Diagnostics) -> None:
    """Find a host whose own name leads to a link-local address first, as systemd's resolver may have it."""
    said = await shell.run('getent ahosts "$(hostname)" 2>/dev/null || true', timeout_s=_CONNECT_S)
    first = (said.split() or [""])[0]
    if is_link_local(first):
        found.add(kinds.LINK_LOCAL, f"`getent ahosts` on {host} says that its name is {first}.")


async def check_nested(reachable: ReachableHost) -> Observation:
    """Check that nodes inside the host can run guests: its processors, its kernel, their own processors."""
    found = Diagnostics()
    for vm in reachable.desired.vms:
        if vm.name in reachable.subject.inner:
            _check_cpu_type(vm, found)
    status = await reachable.client.get(f"/nodes/{quote(reachable.node)}/status")
    flags = set(str((status.get("cpuinfo") or {}).get("flags", "")).split())
    if flags and not flags & _VIRTUALISATION:
        found.add(kinds.NESTED, f"The processors of {reachable.node} show neither vmx nor svm.")
        return Observation(text="no virtualisation", findings=tuple(found))
    said = await _read_nested_parameters(reachable, found)
    if said and not said & _ON:
        found.add(kinds.NESTED, f"kvm on {reachable.node} is loaded with nested={', '.join(sorted(said))}.")
        return Observation(text="off", findings=tuple(found))
    if any(finding.kind is kinds.LAB_GUESTS for finding in found):
        return Observation(text="not in this lab", findings=tuple(found))
    return Observation(text="on" if said else "unknown", findings=tuple(found))


def _check_cpu_type(vm: Vm, found: Diagnostics) -> None:
    has_flag = any(flag.removeprefix("+") in _VIRTUALISATION for flag in vm.cpu.flags if flag[0] == "+")
    if vm.cpu.type not in ("host", "max") and not has_flag:
        found.add(kinds.CPU_TYPE, f"{vm.name} has processors of type {vm.cpu.type}.")


async def _read_nested_parameters(reachable: ReachableHost, found: Diagnostics) -> set[str]:
    """Return what the kernel of the host says; nothing, and a warning, where it cannot be asked."""
    host = reachable.subject.host
    try:
        async with _shell(reachable.subject) as shell:
            said = set((await shell.run(f"{_PARAMETERS} || true")).split())
            await _check_lab(shell, reachable.subject.inner, found)
    except _NoLoginError:
        found.add(kinds.NESTED_UNKNOWN, _describe_missing_login(host.name))
        return set()
    except StackyardError as err:
        found.add(kinds.NESTED_UNKNOWN, err.detail)
        return set()
    if not said:
        found.add(kinds.NESTED_UNKNOWN, f"Neither kvm_intel nor kvm_amd is loaded on {reachable.node}.")
    return said


async def _check_lab(shell: ssh.Shell, guests: frozenset[str], found: Diagnostics) -> None:
    """Refuse a lab whose guests run no programs: in none of them a spec, or a node, can be set up."""
    kind, _, reason = (await shell.run(f"{_LAB_GUESTS} || true")).strip().partition(": ")
    if kind == _RUNS_NOTHING:
        why = f": {reason} where the lab runs" if reason else ""
        found.add(
            kinds.LAB_GUESTS,
            f"The guests of this lab answer a few commands and run no programs{why}. "
            f"{', '.join(sorted(guests))} could not be set up.",
        )


def _describe_missing_login(host: str) -> str:
    return f"SSH to {host} is not set up: there is no `passwords.node_{host}`, no key file and no SSH agent."
