"""Secrets of Talos clusters for tests: made once a process, because their RSA key takes its time."""

from __future__ import annotations

import functools
from pathlib import Path

from tests.support.secrets import IDENTITY, RECIPIENT

from stackyard.secrets.keyring import Keyring
from stackyard.talosconfig.bundle import SecretsBundle, make_bundle

__all__ = ["make_keyring", "shared_bundle", "write_rule"]


@functools.cache
def shared_bundle() -> SecretsBundle:
    """Return the same bundle for every test of a process."""
    return make_bundle()


def make_keyring(home: Path, *, has_key: bool = True) -> Keyring:
    """Return the keys of a user with one age key, or with none."""
    key = {"SOPS_AGE_KEY": IDENTITY} if has_key else {}
    return Keyring(env={"HOME": str(home), **key})


def write_rule(folder: Path, recipient: str = RECIPIENT) -> None:
    """Write a `.sops.yaml` that encrypts for one key."""
    (folder / ".sops.yaml").write_text(
        f"creation_rules:\n  - path_regex: talos/.*\\.sops\\.yaml\n    age: {recipient}\n"
    )
