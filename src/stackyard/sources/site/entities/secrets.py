"""`secrets.yaml`: everything that must not be read by others, by name."""

from typing import Annotated

from pydantic import BeforeValidator, Field, StringConstraints

from stackyard.sources.site.entities.values import Entity, KeyLine, Line, Named

__all__ = ["AuthSecrets", "SecretsFile"]

ApiToken = Annotated[str, StringConstraints(pattern=r"^[^@!=\s]+@[^@!=\s]+![^@!=\s]+=\S+$")]
# Lines are kept: a private key has several.
CodeValue = Annotated[str, StringConstraints(pattern=r"^[^\x00]+$", max_length=65536)]
# A line, or a private key in PEM form, which has several.
Password = Annotated[
    str,
    StringConstraints(
        pattern=r"^(?:[^\x00-\x1f\x7f]{1,1024}|-----BEGIN [\n\r\x20-\x7e]+-----\s*)$", max_length=65536
    ),
]
SigningKey = Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]{64}$")]


def _blank_as_absent(value: object) -> object:
    """Take `""` for nothing: that is how a key that is still to be made is written."""
    return None if value == "" else value


def _without_blanks(value: object) -> object:
    """Leave out what is `""` in a map: an example file lists what there could be, and leaves it blank."""
    return {name: one for name, one in value.items() if one != ""} if isinstance(value, dict) else value


_BLANKS_LEFT_OUT = BeforeValidator(_without_blanks)


class AuthSecrets(Entity):
    """What guests prove themselves with when they ask for their spec."""

    site_token: Annotated[Line | None, BeforeValidator(_blank_as_absent)] = None
    # By the name of the guest.
    node_tokens: Annotated[Named[Line], _BLANKS_LEFT_OUT] = Field(default_factory=dict)
    # Signs the tokens that guests are given; 64 hexadecimal digits.
    signing_key: Annotated[SigningKey | None, BeforeValidator(_blank_as_absent)] = None
    repo_token: Annotated[Line | None, BeforeValidator(_blank_as_absent)] = None


def _nothing_as_default(value: object) -> object:
    return AuthSecrets() if value is None else value


class SecretsFile(Entity):
    """The secrets of a site; the file may be plain, encrypted with SOPS, or absent."""

    # By the name that `api_token` of a node gives: `user@realm!name=uuid`.
    api_tokens: Annotated[Named[ApiToken], _BLANKS_LEFT_OUT] = Field(default_factory=dict)
    # `vm_root` is the password of root in guests, as a crypt hash.
    passwords: Annotated[Named[Password], _BLANKS_LEFT_OUT] = Field(default_factory=dict)
    # Public keys, by the name that users of specs refer to.
    ssh_keys: Annotated[Named[KeyLine], _BLANKS_LEFT_OUT] = Field(default_factory=dict)
    # Opens saved plans and seals private keys in the store; during a rotation several, the newest first.
    site_key: Annotated[Line | None, BeforeValidator(_blank_as_absent)] = None
    auth: Annotated[AuthSecrets, BeforeValidator(_nothing_as_default)] = AuthSecrets()
    # Values for variables of own OpenTofu code, by the name of the variable.
    variables: Annotated[Named[CodeValue], _BLANKS_LEFT_OUT] = Field(default_factory=dict)
