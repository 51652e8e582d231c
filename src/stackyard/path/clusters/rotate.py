"""New credentials of a cluster for the state service: the old ones end when the new ones work.

Each step leaves a cluster that works. The new principal is added beside the old one; then the encrypted files
name it; then the state is read with it; only then does the old one end. A run that is killed in between is
repeated: what it left over goes with the old one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base import yamledit
from stackyard.base.errors import InvalidInputError
from stackyard.path.clusters.configure import configure
from stackyard.path.clusters.credentials import SECRETS_FILE
from stackyard.secrets import change_secrets, read_secrets
from stackyard.sources.cluster.load import load_cluster

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.path.clusters.credentials import EngineSecrets
    from stackyard.secrets import Keyring
    from stackyard.state import Actor, StateService
    from stackyard.state.principals import Principal

__all__ = ["RotationError", "StateLogin", "add_login", "end_logins", "write_login"]

_USERNAME, _PASSWORD = "tfstate_username", "tfstate_password"
# Where the input of a cluster may have its login.
_INPUTS = ("cluster.sops.yaml", "cluster.yaml")
_TOML = "cluster.toml"
_NUMBERED = re.compile(r"(?P<base>.+?)-r(?P<number>[0-9]+)")


class RotationError(InvalidInputError):
    """The credentials of a cluster cannot be rotated."""

    code = "E-INFRA-ROTATE"
    summary = "The credentials cannot be rotated"
    default_remedy = "Name the store of the state service with --store or --data."


@dataclass(frozen=True, slots=True, kw_only=True)
class StateLogin:
    """A login to the state service; its representation shows no token.

    Attributes:
        name: The principal.
        former: Principals of the same cluster that it replaces.
        token: Its token.
    """

    name: str
    former: tuple[str, ...]
    _token: str

    @property
    def token(self) -> str:
        """The token."""
        return self._token

    def __repr__(self) -> str:
        return f"StateLogin(name={self.name!r}, former={self.former!r})"


def add_login(states: StateService, secrets: EngineSecrets, actor: Actor) -> StateLogin:
    """Add a principal with the rights of the one that a cluster uses.

    Raises:
        RotationError: The store has no such principal.
    """
    used = secrets.values.get(_USERNAME, "")
    known = {one.name: one for one in states.principals.all()}
    if used not in known:
        listed = ", ".join(sorted(known)) or "none"
        raise RotationError(
            f"The store has no principal `{used}`, which the cluster logs in with; it has {listed}.",
        )
    base = _base_of(used)
    family = [name for name in known if _base_of(name) == base]
    number = 1 + max(_number_of(name) for name in family)
    old: Principal = known[used]
    made, token = states.principals.add(
        f"{base}-r{number}", old.access, actor, certificate=old.certificate, note=old.note
    )
    return StateLogin(name=made.name, former=tuple(sorted(family)), _token=token)


def write_login(folder: Path, login: StateLogin, keyring: Keyring) -> None:
    """Write a login into the input of a cluster, and into what is generated from it.

    Everything else stays as it is, in encrypted files to the byte.

    Args:
        folder: The folder of the cluster.
        login: The login.
        keyring: The keys that open its secrets.

    Raises:
        SecretsLockedError: No key opens one.
        RotationError: The login is in a file that is not edited here.
        FileError: One cannot be written.
    """
    changes = (yamledit.Set((_USERNAME,), login.name), yamledit.Set((_PASSWORD,), login.token))
    inputs = [folder / name for name in _INPUTS if _PASSWORD in read_secrets(folder / name, keyring).data]
    if not inputs and (folder / _TOML).exists():
        raise RotationError(
            f"The login is in {folder / _TOML}, which is not edited here.",
            remedy=f"Move the secrets to {_INPUTS[0]} with `stackyard cluster split`, and run it again.",
        )
    for path in inputs or [folder / "infrastructure" / SECRETS_FILE]:
        change_secrets(path, changes, keyring)
    if inputs:
        configure(load_cluster(folder, keyring=keyring), keyring=keyring)


def end_logins(states: StateService, login: StateLogin, actor: Actor, overlap_s: float) -> None:
    """Let the principals end that a login replaces: at once, or after an overlap."""
    for name in login.former:
        if overlap_s > 0:
            states.principals.limit(name, overlap_s, actor)
        else:
            states.principals.remove(name, actor)


def _base_of(name: str) -> str:
    found = _NUMBERED.fullmatch(name)
    return name if found is None else found["base"]


def _number_of(name: str) -> int:
    found = _NUMBERED.fullmatch(name)
    return 0 if found is None else int(found["number"])
