"""What this machine and the site have to bring: programs and secrets."""

from __future__ import annotations

import platform
import shutil
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostics
from stackyard.base.errors import StackyardError
from stackyard.desired import Container
from stackyard.engine.tools.find import find_engine
from stackyard.operator.preflight import kinds
from stackyard.operator.preflight.model import Observation, format_list
from stackyard.render import render

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.base.errors import Location
    from stackyard.desired import Guest
    from stackyard.operator.preflight.subject import PreflightSubject

__all__ = ["check_secrets", "check_tools"]

_RUNNER = "ansible-runner"


async def check_tools(subject: PreflightSubject) -> Observation:
    """Check that there is an engine that works, and what the playbook of the site needs where it has one."""
    found = Diagnostics()
    texts = [f"Python {platform.python_version()}"]
    try:
        engine = await find_engine()
    except StackyardError as err:
        found.add(kinds.TOOL, err.detail)
    else:
        texts.append(f"{engine.engine.flavour.label} {engine.engine.version}")
    texts += _ansible(subject, found)
    return Observation(text=", ".join(texts), findings=tuple(found))


def _ansible(subject: PreflightSubject, found: Diagnostics) -> Iterator[str]:
    """Look for ansible-runner where guests are configured by the site's own playbook."""
    # lazy: the way into guests takes long to import, and few sites have a playbook
    from stackyard.operator.guests.ansible import AnsibleMissingError, find_playbook  # lazy: as above

    try:
        playbook = find_playbook(subject.site)
    except StackyardError as err:
        found.add(kinds.TOOL, err.detail)
        return
    if playbook is None:
        return
    if shutil.which(_RUNNER) is None:
        detail = f"{playbook} configures guests, and {_RUNNER} is not on PATH."
        found.add(kinds.TOOL, f"{detail} {AnsibleMissingError.default_remedy}")
    else:
        yield _RUNNER


async def check_secrets(subject: PreflightSubject) -> Observation:
    """Check that every secret that is named has a value, and that someone can log in to each guest."""
    found = Diagnostics()
    if subject.resolved is None:
        if not subject.host.is_host_only:
            found.add(
                kinds.SECRET,
                f"There is no API token for {subject.host.name}: `api_tokens` in secrets.yaml.",
                _locate_token(subject),
            )
        return Observation(text="no token" if len(found) else "none needed", findings=tuple(found))
    desired, secrets = subject.resolved.desired, subject.resolved.secrets
    variables = render(desired, scope=subject.resolved.target.state_name).variables
    for variable in variables:
        name = variable.secret.secret
        if name not in secrets:
            found.add(kinds.SECRET, f"`{name}` is used, and the secrets of the site have no such value.")
    locked = sorted(guest.name for guest in desired.guests if _is_locked(guest))
    if locked:
        found.add(kinds.NOBODY, f"No user of {format_list(locked)} has a key or a password.")
    count, missing = 1 + len(variables), sum(finding.kind is kinds.SECRET for finding in found)
    text = f"{missing} of {count} missing" if missing else f"{count} named, all readable"
    return Observation(text=text, findings=tuple(found))


def _locate_token(subject: PreflightSubject) -> Location | None:
    node = subject.site.nodes.get(subject.host.name)
    return None if node is None else node.places.place(("api_token",))


def _is_locked(guest: Guest) -> bool:
    """Return whether a guest gets users of ours, none of whom can log in."""
    if guest.imported:
        return False
    if isinstance(guest, Container):
        return not (guest.ssh_keys or guest.password)
    init = guest.cloud_init
    if init is None or init.user_data is not None or not init.users:
        return False
    return not any(user.keys or user.password for user in init.users)
