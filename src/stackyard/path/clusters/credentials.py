"""The secrets of `infrastructure/secrets.sops.yaml`, decrypted once, as the engine gets them."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError, Location
from stackyard.path.clusters.initialise import engine_secrets
from stackyard.secrets import read_secrets
from stackyard.secrets.base import SecretsKind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.secrets import Keyring

__all__ = [
    "SECRETS_FILE",
    "EngineSecrets",
    "PlainSecretsError",
    "SecretsMissingError",
    "read_engine_secrets",
]

SECRETS_FILE = "secrets.sops.yaml"
# S3 servers that are not of AWS refuse the checksums that newer clients send by default.
_CHECKSUMS = {
    "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
    "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required",
}


class SecretsMissingError(InvalidInputError):
    """The credentials of a cluster are not there, or some of them are not."""

    code = "E-CLUSTER-SECRETS"
    summary = "The credentials of the cluster are missing"
    default_remedy = "Add them to the secrets of the cluster, and run `stackyard cluster configure`."


class PlainSecretsError(InvalidInputError):
    """The credentials of a cluster are in clear in a file that git may hold."""

    code = "E-CLUSTER-PLAIN-SECRETS"
    summary = "The credentials of the cluster are not encrypted"
    default_remedy = (
        "`stackyard cluster configure` encrypts the file. If git has it already, change the credentials: "
        "they are in its history."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSecrets:
    """What the engine gets in its environment; the representation shows no value.

    Attributes:
        path: The file.
        values: The secrets by name.
    """

    path: Path
    values: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the engine."""
        return {**_CHECKSUMS, **engine_secrets(self.values)}

    def require(self, *names: str) -> None:
        """Refuse to go on without some of them.

        Raises:
            SecretsMissingError: The file lacks some; the error names each.
        """
        missing = [name for name in names if not self.values.get(name)]
        if missing:
            raise SecretsMissingError(
                f"{self.path} has no value for {', '.join(f'`{name}`' for name in missing)}.",
                where=Location(str(self.path)),
            )


def read_engine_secrets(infrastructure: Path, keyring: Keyring, *, is_needed: bool = True) -> EngineSecrets:
    """Read the secrets of a cluster; what cannot be decrypted is never taken for absent.

    Args:
        infrastructure: The folder that has them.
        keyring: The keys of the user.
        is_needed: Whether the file has to be there: machines of their own, with the state in the store of
            stackyard, need no credentials.

    Raises:
        SecretsMissingError: There is no file with them.
        PlainSecretsError: It is not encrypted.
        SecretsLockedError: It is encrypted, and not for the keys of the user.
        InvalidInputError: It was cut off or changed.
    """
    path = infrastructure / SECRETS_FILE
    found = read_secrets(path, keyring)
    if found.kind is SecretsKind.ABSENT and is_needed:
        raise SecretsMissingError(
            f"There is no {path}.", where=Location(str(path)), remedy="Run `stackyard cluster configure`."
        )
    if found.kind is SecretsKind.PLAIN and found.data:
        raise PlainSecretsError(f"{path} is not encrypted.", where=Location(str(path)))
    values = {name: str(value) for name, value in found.data.items() if value not in (None, "")}
    return EngineSecrets(path=path, values=MappingProxyType(values))
