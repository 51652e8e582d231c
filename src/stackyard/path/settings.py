"""How a target is run: where its files are, with which provider, how long to wait."""

from __future__ import annotations

import enum
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackyard.sources.store import ChosenStore

__all__ = ["QUEUE_S", "ProviderChoice", "RunSettings", "read_cli_config_path"]

# Runs on one target queue behind each other, and do not fail because another is at work.
QUEUE_S = 600.0


class ProviderChoice(enum.StrEnum):
    """Which Proxmox provider the engine uses."""

    BUILT_IN = "builtin"
    BPG = "bpg"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How to run.

    Attributes:
        store: Where what runs leave for the next is kept: states, journals, records.
        provider: Which provider.
        is_provider_given: Whether the user named it; else a stack that names one has its own.
        cli_config: The engine's settings file, where a provider has to be found in an unusual place.
        parallelism: How many resources at once; the engine's own number when absent.
        lock_wait_s: How long to wait for the lock of the state.
    """

    store: ChosenStore
    provider: ProviderChoice = ProviderChoice.BUILT_IN
    is_provider_given: bool = True
    cli_config: Path | None = None
    parallelism: int | None = None
    lock_wait_s: float = QUEUE_S

    @property
    def base(self) -> Path:
        """The folder for what stays on this machine: work folders, caches."""
        return self.store.base


def read_cli_config_path() -> Path | None:
    """Return the engine's settings file that the user names for it on purpose."""
    named = os.environ.get("STACKYARD_TOFU_CONFIG")
    return Path(named) if named else None
