"""The age keys of a cluster's user."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stackyard.path.clusters.templates import find_top
from stackyard.secrets.keyring import Keyring

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["make_keyring"]


def make_keyring(folder: Path, env: Mapping[str, str] | None = None) -> Keyring:
    """Return the keys of the user: those of the environment, or `age.key` of the cluster or repository.

    Args:
        folder: The folder of the cluster.
        env: The environment; that of the process when absent.
    """
    found = dict(os.environ if env is None else env)
    if not found.get("SOPS_AGE_KEY_FILE") and not found.get("SOPS_AGE_KEY"):
        for top in (folder.absolute(), find_top(folder)):
            if (top / "age.key").is_file():
                found["SOPS_AGE_KEY_FILE"] = str(top / "age.key")
                break
    return Keyring(env=found)
