"""The settings file of the engine (`~/.tofurc`): where providers are installed from, and credentials.

Nothing of a credential is ever part of an error or of a report.
"""

from __future__ import annotations

import base64
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.hcltree import parse_tree
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.errors import FileError, InvalidInputError, Location
from stackyard.sources.stacks.hcl import list_attributes, list_blocks
from stackyard.sources.stacks.hcl_expressions import convert, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.base.documents.hcltree import Node
    from stackyard.upgrades.addresses import ProviderAddress

__all__ = ["CliConfig", "CliConfigError", "Method", "read_cli_config"]

_KINDS = frozenset({"direct", "filesystem_mirror", "network_mirror", "oci_mirror"})
_TOKEN_VARIABLE = "TF_TOKEN_"  # noqa: S105 - the beginning of the names of variables
_LARGEST_BYTES = 2**20
# The file is in the first version of the language, in which a block may have keys in quotes. As the value of
# an attribute, it is the same in the second one.
_OBJECT = re.compile(rb"\b(dev_overrides|services)\s*\{")


class CliConfigError(InvalidInputError):
    """The settings file of the engine cannot be read."""

    code = "E-STACK-CLI-CONFIG"
    summary = "The settings file of OpenTofu is not valid"
    default_remedy = "Correct the file, or name another one with STACKYARD_TOFU_CONFIG."


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One way to install providers.

    Attributes:
        kind: `direct`, `filesystem_mirror`, `network_mirror` or `oci_mirror`.
        place: Its folder, address or template.
        include: Patterns of the providers that it is for; for all when empty.
        exclude: Patterns of those that it is not for.
    """

    kind: str
    place: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def serves(self, address: ProviderAddress, default_host: str) -> bool:
        """Return whether it is for a provider."""
        if any(_matches(one, address, default_host) for one in self.exclude):
            return False
        return not self.include or any(_matches(one, address, default_host) for one in self.include)


@dataclass(frozen=True, slots=True, kw_only=True)
class CliConfig:
    """What the settings file says.

    Attributes:
        methods: The ways to install providers, in order; None where the file does not say.
        overrides: Folders of providers under development, by source.
        services: Addresses of services by host, which are then not asked for.
        tokens: Tokens by host.
        logins: Values of the header `Authorization` for OCI registries, by host or `host/repository`.
    """

    methods: tuple[Method, ...] | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)
    services: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)
    logins: Mapping[str, str] = field(default_factory=dict, repr=False)

    def login(self, host: str, repository: str) -> str | None:
        """Return the login to a repository of an OCI registry: that of the longest part of its name."""
        name = f"{host}/{repository}"
        fitting = [one for one in self.logins if name == one or name.startswith(f"{one}/") or one == ""]
        return self.logins[max(fitting, key=len)] if fitting else None


def read_cli_config(path: Path | None, environment: Mapping[str, str] | None = None) -> CliConfig:
    """Return what the settings file and the environment say.

    Args:
        path: The file; None where there is none.
        environment: Where the tokens `TF_TOKEN_…` are; that of this process when absent.

    Raises:
        CliConfigError: The file is not valid.
        FileError: It cannot be read.
    """
    found = _Reader()
    if path is not None:
        root = parse_tree(_OBJECT.sub(rb"\1 = {", _content(path)))
        if root.has_error:
            detail = f"{path} cannot be read: it is not in the native syntax of OpenTofu, or has a mistake."
            raise CliConfigError(detail, where=Location(str(path)))
        for kind, labels, block in list_blocks(root):
            found.read(kind, labels, block)
    tokens = {**_saved_tokens(), **found.tokens, **_environment_tokens(environment or os.environ)}
    return CliConfig(
        methods=None if found.methods is None else tuple(found.methods),
        overrides=found.overrides,
        services=found.services,
        tokens=tokens,
        logins=found.logins,
    )


def _content(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST_BYTES + 1)
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err
    if len(data) > _LARGEST_BYTES:
        raise CliConfigError(f"{path} is larger than 1 MiB.", where=Location(str(path)))
    return data


@dataclass(slots=True)
class _Reader:
    """Collects what the blocks of the file say."""

    methods: list[Method] | None = None
    overrides: dict[str, str] = field(default_factory=dict)
    services: dict[str, dict[str, str]] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    logins: dict[str, str] = field(default_factory=dict)

    def read(self, kind: str, labels: list[str], block: Node) -> None:
        values = _values(block)
        label = labels[0].lower() if labels else ""
        if kind == "provider_installation":
            self.methods = self.methods or []
            self.overrides |= _texts(values.get("dev_overrides"))
            for inner, _, body in list_blocks(block):
                self.read_method(inner, _values(body))
        elif kind == "host":
            self.services[label] = _texts(values.get("services"))
        elif kind == "credentials" and "token" in values:
            self.tokens[label] = str(values["token"])
        elif kind in ("oci_credentials", "oci_default_credentials") and "username" in values:
            words = f"{values['username']}:{values.get('password', '')}"
            self.logins[label] = "Basic " + base64.b64encode(words.encode()).decode()

    def read_method(self, kind: str, values: dict[str, Any]) -> None:
        if kind in _KINDS and self.methods is not None:
            place = values.get("path") or values.get("url") or values.get("repository_template") or ""
            lists = {key: _list(values.get(key)) for key in ("include", "exclude")}
            self.methods.append(Method(kind=kind, place=str(place), **lists))


def _values(block: Node) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in list_attributes(block):
        said = convert(value)
        # The engine fills in such a text itself: it is no expression of the language.
        is_template = isinstance(said, list) and said[:1] == ["t"]
        text = text_of(value).strip().removeprefix('"').removesuffix('"')
        found[name] = text if is_template else said
    return found


def _texts(value: Any) -> dict[str, str]:
    inner = value[1] if isinstance(value, list) and value[:1] == ["o"] else {}
    return {key: text for key, text in inner.items() if isinstance(text, str)}


def _list(value: Any) -> tuple[str, ...]:
    inner = value[1:] if isinstance(value, list) and value[:1] == ["l"] else []
    return tuple(one for one in inner if isinstance(one, str))


def _matches(pattern: str, address: ProviderAddress, default_host: str) -> bool:
    parts = pattern.lower().split("/")
    if len(parts) == 1:
        parts = ["hashicorp", *parts]
    if len(parts) == 2:
        parts = [default_host, *parts]
    return len(parts) == 3 and all(
        one == "*" or one == part for one, part in zip(parts, address, strict=True)
    )


def _environment_tokens(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the tokens of `TF_TOKEN_app_example_com`, in which `__` is a hyphen and `_` a dot."""
    return {
        re.sub("_", ".", name.removeprefix(_TOKEN_VARIABLE).replace("__", "-")).lower(): value
        for name, value in environment.items()
        if name.startswith(_TOKEN_VARIABLE) and value
    }


def _saved_tokens() -> dict[str, str]:
    """Return what `tofu login` saved."""
    try:
        saved = parse_json(_content(Path.home() / ".terraform.d" / "credentials.tfrc.json"))
        return {host.lower(): str(one["token"]) for host, one in saved["credentials"].items()}
    except (FileError, CliConfigError, ValueError, KeyError, TypeError, AttributeError):
        return {}
