"""How a target is run: where its files are, with which provider, how long to wait."""

from __future__ import annotations

import enum
import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ProviderChoice", "RunSettings", "read_cli_config_path"]


class ProviderChoice(enum.StrEnum):
    """Which Proxmox provider the engine uses."""

    BUILT_IN = "builtin"
    BPG = "bpg"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How to run.

    Attributes:
        base: The folder for what runs leave for the next: states, work folders, journals.
        provider: Which provider.
        cli_config: The engine's settings file, where a provider has to be found in an unusual place.
        parallelism: How many resources at once; the engine's own number when absent.
        lock_wait_s: How long to wait for the lock of the state.
    """

    base: Path
    provider: ProviderChoice = ProviderChoice.BUILT_IN
    cli_config: Path | None = None
    parallelism: int | None = None
    lock_wait_s: float = 0.0


def read_cli_config_path() -> Path | None:
    """Return the engine's settings file that the user names for it on purpose."""
    named = os.environ.get("STACKYARD_TOFU_CONFIG")
    return Path(named) if named else None
