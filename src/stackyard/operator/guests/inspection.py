"""Looking at a guest: is it what it should be? Every mismatch is named, all at once."""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import SMALL
from stackyard.desired import Vm
from stackyard.operator.guests.access import log_in
from stackyard.operator.guests.phases import GuestConfigError, PhaseFailed, Phases, last_lines
from stackyard.operator.guests.push import run_as_root
from stackyard.operator.outcome import PhaseStatus
from stackyard.sources.site.apply_script import list_packages, spec_digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stackyard.clients import ssh
    from stackyard.desired import Guest
    from stackyard.operator.guests.context import GuestContext
    from stackyard.operator.outcome import Phase
    from stackyard.sources.manifest.model import Node

__all__ = ["inspect"]

# Each line of what it finds begins with the word of the check that it belongs to.
_FUNCTIONS = r"""
check_user() {
    if ! home=$(getent passwd "$1" | cut -d: -f6) || [ -z "$home" ]; then
        printf 'users\tThere is no user %s.\n' "$1"
    fi
}
check_key() {
    home=$(getent passwd "$1" | cut -d: -f6)
    [ -z "$home" ] || grep -qsF -- "$2" "$home/.ssh/authorized_keys" ||
        printf 'users\tA key of %s is missing: %s\n' "$1" "$2"
}
check_package() {
    if command -v dpkg-query >/dev/null; then
        state=$(dpkg-query --show --showformat '${db:Status-Status}' "$1" 2>/dev/null) || state=
        [ "$state" = installed ] || printf 'packages\t%s is not installed.\n' "$1"
    elif command -v apk >/dev/null; then
        apk info --installed "$1" >/dev/null 2>&1 || printf 'packages\t%s is not installed.\n' "$1"
    else
        rpm --query "$1" >/dev/null 2>&1 || printf 'packages\t%s is not installed.\n' "$1"
    fi
}
check_running() {
    state=$(systemctl is-active "$1" 2>/dev/null) || :
    [ "$state" = active ] || printf 'services\t%s is %s and should run.\n' "$1" "${state:-unknown}"
}
check_stopped() {
    state=$(systemctl is-active "$1" 2>/dev/null) || :
    [ "$state" != active ] || printf 'services\t%s runs and should not.\n' "$1"
}
check_marker() {
    for name in failed complete; do
        if [ -e "/var/lib/stackyard/$name.json" ]; then
            printf 'marker\t%s\n' "$(head -n 1 "/var/lib/stackyard/$name.json")"
            return 0
        fi
    done
    printf 'marker\t{}\n'
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExpectedGuest:
    """What a guest should be."""

    users: tuple[str, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    packages: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    digest: str | None = None

    def script(self) -> str:
        """Return what is run in the guest."""
        calls = [
            *(("check_user", user) for user in self.users),
            *(("check_key", user, key) for user, key in self.keys),
            *(("check_package", package) for package in self.packages),
            *(("check_running", service) for service in self.running),
            *(("check_stopped", service) for service in self.stopped),
            *((("check_marker",),) if self.digest is not None else ()),
        ]
        return "\n".join([_FUNCTIONS, *(shlex.join(call) for call in calls), "exit 0", ""])


@dataclass(frozen=True, slots=True)
class _InspectionFindings:
    """What was found wrong, by check."""

    wrong: dict[str, list[str]] = field(default_factory=dict)

    def add(self, check: str, detail: str) -> None:
        self.wrong.setdefault(check, []).append(detail)


async def inspect(
    node: Node, guest: Guest, address: str | None, ctx: GuestContext, emit: events.Emit = events.ignore
) -> tuple[Phase, ...]:
    """Compare a guest with what it should be, and return each check; one that failed names every mismatch.

    Args:
        node: The node of the manifest.
        guest: The same in the model.
        address: Where it answers, where that is known.
        ctx: What is needed for it.
        emit: Told of each check.
    """
    phases = Phases(node.name, ctx.redactor, emit)
    if address is None:
        phases.record("verify_address", PhaseStatus.FAILED, f"No address of {node.name} is known.")
        return phases.all
    phases.record("verify_address", PhaseStatus.PASSED, address)
    with contextlib.suppress(PhaseFailed):
        await _inspect(node, guest, address, ctx, phases)
    return phases.all


async def _inspect(node: Node, guest: Guest, address: str, ctx: GuestContext, phases: Phases) -> None:
    async with contextlib.AsyncExitStack() as stack:
        with phases.phase("verify_ssh", f"Logging in to {node.name}") as note:
            shell = await stack.enter_async_context(log_in(ctx.hosts(node, guest, address), ctx))
            note.detail = f"Logged in to {shell.host}."
            wanted, found = _list_expectations(guest, ctx.document(node)), _InspectionFindings()
            await _look(shell, wanted, ctx, found)
    _tell(phases, found, "users", ", ".join(wanted.users))
    _tell(phases, found, "packages", ", ".join(wanted.packages))
    _tell(phases, found, "services", ", ".join(wanted.running))
    if wanted.digest is not None:
        _tell(phases, found, "spec", f"Version {wanted.digest[:12]}.")


def _tell(phases: Phases, found: _InspectionFindings, check: str, passed: str) -> None:
    wrong = found.wrong.get(check)
    status = PhaseStatus.FAILED if wrong else PhaseStatus.PASSED
    phases.record(f"verify_{check}", status, " ".join(wrong) if wrong else passed)


def _list_expectations(guest: Guest, document: Mapping[str, Any] | None) -> _ExpectedGuest:
    init = guest.cloud_init if isinstance(guest, Vm) else None
    booted = () if init is None or init.user_data is not None else init.users
    users = [str(user.name) for user in booted if user.name]
    keys = [(str(user.name), key) for user in booted if user.name for key in user.keys]
    packages = [] if init is None or init.user_data is not None else list(init.packages)
    if document is None:
        return _ExpectedGuest(users=_once(users), keys=_once(keys), packages=_once(packages))
    for user in document["access"]["users"]:
        users.append(user["name"])
        keys += [(user["name"], key) for key in user["ssh_keys"]]
    services = document["platform"]["services"]
    return _ExpectedGuest(
        users=_once(users),
        keys=_once(keys),
        packages=_once([*packages, *list_packages(document)]),
        running=_once(services["enable"]),
        stopped=_once(services["disable"]),
        digest=spec_digest(document),
    )


def _once(items: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(items))


async def _look(
    shell: ssh.Shell, wanted: _ExpectedGuest, ctx: GuestContext, found: _InspectionFindings
) -> None:
    ended = await run_as_root(shell, wanted.script(), timeout_s=ctx.patience.ssh_s)
    if ended.status != 0:
        raise GuestConfigError(f"The guest cannot be looked at: {last_lines(ended.output)}")
    for check, detail in _lines(ended.output):
        if check == "marker":
            _check_marker(detail, wanted.digest or "", found)
        else:
            found.add(check, detail)


def _lines(output: str) -> Iterator[tuple[str, str]]:
    for line in output.splitlines():
        check, tab, detail = line.partition("\t")
        if tab:
            yield check, detail


def _check_marker(text: str, digest: str, found: _InspectionFindings) -> None:
    try:
        marker = parse_json(text, SMALL)
        status, shown = marker.get("status"), str(marker.get("digest", ""))
    except (ValueError, AttributeError):
        status, shown = None, ""
    if status is None:
        found.add("spec", "It has not been applied.")
    elif status != "complete":
        found.add("spec", f"Applying it failed: {marker.get('error', 'a step failed')}.")
    elif shown != digest:
        found.add("spec", f"Another version of it was applied: {shown[:12]}, expected {digest[:12]}.")
