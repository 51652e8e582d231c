"""Where private keys and passwords come from: the environment, the usual files, and commands that print them.

Nothing is looked for before a file needs it. Every place that was looked at is remembered, so that an error
can say which keys were tried; the keys themselves are never part of a text.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.base import process
from stackyard.base.errors import StackyardError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AgeIdentity", "Keyring", "KeyringError", "run_key_command"]

# How much of the complaints of a command is shown: the end says what went wrong.
_SHOWN_CHARACTERS = 1000
_COMMAND_TIMEOUT_S = 120.0


class KeyringError(StackyardError):
    """A private key or a password was named and cannot be used: no such file, not a key, a failed command."""

    code = "E-SECRETS-KEY"
    summary = "A private key or password cannot be used"
    default_remedy = "Correct the variable, file or command that is named."


@dataclass(frozen=True, slots=True, kw_only=True)
class AgeIdentity:
    """A private key of age, or of SSH, and where it came from.

    Attributes:
        name: Its public half, where that is known.
        place: Where it was found.
        identity: What pyrage takes.
    """

    name: str
    place: str
    identity: Any = field(repr=False)


@dataclass(slots=True)
class Keyring:
    """The keys of one user.

    Attributes:
        env: The environment to look in.
        vault_ids: Passwords of Ansible Vault named on the command line, `LABEL@FILE` or `FILE`.
        notes: What was looked at so far and what was there, for errors.
    """

    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    vault_ids: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    cache: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def home(self) -> Path:
        """The home folder of the user."""
        return Path(self.env.get("HOME") or Path.home())

    @property
    def config_home(self) -> Path:
        """The folder for settings, as SOPS finds it."""
        base = Path(self.env.get("XDG_CONFIG_HOME", ""))
        return base if base.is_absolute() else self.home / ".config"

    @property
    def age_keys_file(self) -> Path:
        """The usual file of age keys."""
        return self.config_home / "sops" / "age" / "keys.txt"

    def note(self, text: str) -> None:
        """Remember that a place was looked at."""
        if text not in self.notes:
            self.notes.append(text)


def run_key_command(words: tuple[str, ...], env: Mapping[str, str], *, named: str) -> str:
    """Run a program that prints a key or a password, and return what it printed.

    Args:
        words: The program and its arguments.
        env: Its environment: that of the user, because agents and password stores need it.
        named: Where the command is set, for errors.

    Raises:
        KeyringError: It failed or printed nothing.
    """
    command = process.Command(argv=words, env=env, timeout_s=_COMMAND_TIMEOUT_S)
    try:
        output = _run_blocking(command)
    except (process.ProcessFailedError, process.ProcessTimeoutError) as err:
        # Not what it printed: that may be the key.
        said = err.stderr.strip()[-_SHOWN_CHARACTERS:]
        raise KeyringError(
            f"The command of {named}, `{shlex.join(words)}`, failed." + (f"\n{said}" if said else "")
        ) from None
    except StackyardError as err:
        raise KeyringError(f"The command of {named} gave no key. {err.detail}") from err
    if not output.strip():
        raise KeyringError(f"The command of {named}, `{shlex.join(words)}`, printed nothing.")
    return output


def _run_blocking(command: process.Command) -> str:
    """Run a program to its end, also for a caller that is itself called by a running loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(process.run(command)).stdout
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(asyncio.run, process.run(command)).result().stdout
