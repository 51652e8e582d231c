"""The user that automation logs in as: made, allowed to be root, and checked."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import UsageError
from stackyard.scenario.actions.apt import install_packages, refresh_packages
from stackyard.scenario.failures import PhaseFailedError
from stackyard.scenario.model import ActionResult
from stackyard.sources.site.specs import DEFAULT_USER

if TYPE_CHECKING:
    from stackyard.scenario.context import Context

__all__ = ["CreateUser", "VerifyUser", "make_user"]

# What Debian's `useradd` accepts.
_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")

_ADD_KEYS = """\
set -e
home=$(getent passwd {user} | cut -d : -f 6); group=$(id -gn {user})
install -d -m 700 -o {user} -g "$group" "$home/.ssh"
file=$home/.ssh/authorized_keys
touch "$file"
while read -r key; do grep -qxF -e "$key" "$file" || printf '%s\\n' "$key" >> "$file"; done
chown {user}:"$group" "$file"
chmod 600 "$file"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateUser:
    """Makes a user that may become root without a password and that every key of the site opens."""

    async def run(self, context: Context) -> ActionResult:
        """Make the user, or bring it up to date."""
        user, message = await make_user(context)
        return ActionResult(success=True, message=message, context_updates={"user": user})


async def make_user(context: Context) -> tuple[str, str]:
    """Make the user that is meant, or bring it up to date; return its name and what to say of it.

    Raises:
        CommandFailedError: A command failed.
    """
    user = _user(context)
    keys = () if context.site is None else tuple(context.site.secret_values.ssh_keys.values())
    is_new = not await context.succeeds(f"id -u {user}")
    if is_new:
        await context.sh(f"useradd --create-home --shell /bin/bash {user}")
    if not await context.succeeds("command -v visudo"):
        await refresh_packages(context)
        await install_packages(context, ["sudo"])
    await _allow_root(context, user)
    if keys:
        await context.sh(_ADD_KEYS.format(user=user), stdin="\n".join(key.strip() for key in keys))
    else:
        context.warn("There are no `ssh_keys` of a site: no user can log in with a key.")
    return user, f"{user} {'was created' if is_new else 'exists'}, with {len(keys)} keys."


async def _allow_root(context: Context, user: str) -> None:
    path = f"/etc/sudoers.d/50-{user}"
    # A mistake in this folder locks everyone out of sudo, so that it is looked at before it counts.
    await context.machine.write(
        f"/run/stackyard-sudoers-{user}", f"{user} ALL=(ALL) NOPASSWD:ALL", mode=0o440
    )
    await context.sh(
        f"visudo -cf /run/stackyard-sudoers-{user} && mkdir -p /etc/sudoers.d && "
        f"mv -f /run/stackyard-sudoers-{user} {path}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyUser:
    """Looks whether the user is there and may become root without a password."""

    async def run(self, context: Context) -> ActionResult:
        """Look; without a user to look for there is nothing to do."""
        if context.options.user is None:
            return ActionResult(success=True, message="No user was asked for.")
        user = _user(context)
        if not await context.succeeds(f"id -u {user}"):
            raise PhaseFailedError(f"There is no user '{user}' on {context.machine.shown}.")
        if not await context.succeeds(f"su -s /bin/sh -c 'sudo -n true' {user}"):
            raise PhaseFailedError(f"'{user}' may not become root without a password.")
        return ActionResult(success=True, message=f"{user} is there and may become root.")


def _user(context: Context) -> str:
    """Return the user that is meant: the one said, else that of the site."""
    said = context.options.user
    if said is None and context.site is not None:
        defaults = context.site.settings.defaults
        said = defaults.automation_user or defaults.vm_user
    user = said or DEFAULT_USER
    if not _NAME.fullmatch(user):
        raise UsageError(f"{shlex.quote(user)} cannot be the name of a user.")
    return user
