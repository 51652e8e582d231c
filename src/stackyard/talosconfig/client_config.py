"""Files of talosctl, `talosconfig`: with which certificate, and through which nodes, a cluster is reached."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from stackyard.base.documents.limits import SMALL
from stackyard.base.documents.yamltext import parse_yaml
from stackyard.base.errors import InvalidInputError, Location
from stackyard.talosconfig.certificates import CertificateAndKey, PemError, decode_pem
from stackyard.talosconfig.yamlform import write_documents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.talosconfig.bundle import SecretsBundle

__all__ = [
    "ClientConfig",
    "ClientConfigError",
    "ClientContext",
    "make_client_config",
    "merge_client_configs",
    "parse_client_config",
    "write_client_config",
]


class ClientConfigError(InvalidInputError):
    """A talosconfig file is not YAML, or lacks what a client needs."""

    code = "E-TALOSCONFIG"
    summary = "The talosconfig cannot be used"
    default_remedy = "Make a new one, or correct the file."


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientContext:
    """How one cluster is reached; its representation shows no key.

    Attributes:
        endpoints: The control plane nodes to connect to.
        nodes: The nodes that commands are for, if the command names none.
        ca: The certificate of the authority of Talos, as PEM.
        client: The certificate and key of the client.
    """

    endpoints: tuple[str, ...]
    nodes: tuple[str, ...] = ()
    ca: str = field(repr=False)
    client: CertificateAndKey = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """A talosconfig.

    Attributes:
        context: The name of the context that is used.
        contexts: All contexts by name.
    """

    context: str
    contexts: Mapping[str, ClientContext]


def make_client_config(
    name: str,
    endpoints: Sequence[str],
    bundle: SecretsBundle,
    client: CertificateAndKey,
    nodes: Sequence[str] = (),
) -> ClientConfig:
    """Return a talosconfig with one context."""
    context = ClientContext(endpoints=tuple(endpoints), nodes=tuple(nodes), ca=bundle.os.crt, client=client)
    return ClientConfig(context=name, contexts={name: context})


def write_client_config(config: ClientConfig) -> str:
    """Return the YAML of a talosconfig. It has a private key: keep it where only its user reads."""
    contexts = {name: _describe(context) for name, context in config.contexts.items()}
    return write_documents([{"context": config.context, "contexts": contexts}])


def parse_client_config(text: str, path: str) -> ClientConfig:
    """Read a talosconfig.

    Raises:
        ClientConfigError: It is not one.
    """
    try:
        data = parse_yaml(text, SMALL)
    except yaml.YAMLError as err:
        mark = getattr(err, "problem_mark", None)
        where = Location(path) if mark is None else Location(path, mark.line + 1, mark.column + 1)
        raise ClientConfigError(f"{path} is not valid YAML.", where=where) from err
    contexts = data.get("contexts") if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or not isinstance(contexts, Mapping):
        raise ClientConfigError(f"{path} has no `contexts`.", where=Location(path))
    return ClientConfig(
        context=str(data.get("context") or ""),
        contexts={str(name): _read(str(name), one, path) for name, one in contexts.items()},
    )


def merge_client_configs(existing: ClientConfig, new: ClientConfig) -> ClientConfig:
    """Return the contexts of both; the new one replaces one of the same name, and is used."""
    return dataclasses.replace(new, contexts={**existing.contexts, **new.contexts})


def _describe(context: ClientContext) -> dict[str, Any]:
    ca = CertificateAndKey(crt=context.ca, key="")
    return {
        "endpoints": list(context.endpoints),
        **({"nodes": list(context.nodes)} if context.nodes else {}),
        "ca": ca.crt_base64,
        "crt": context.client.crt_base64,
        "key": context.client.key_base64,
    }


def _read(name: str, value: Any, path: str) -> ClientContext:
    if not isinstance(value, Mapping):
        raise ClientConfigError(f"The context `{name}` of {path} is no mapping.", where=Location(path))
    pems = {}
    for key in ("ca", "crt", "key"):
        try:
            pems[key] = decode_pem(str(value.get(key) or ""))
        except PemError as err:
            raise ClientConfigError(
                f"`{key}` of the context `{name}` of {path}: {err}.", where=Location(path)
            ) from err
    return ClientContext(
        endpoints=tuple(map(str, value.get("endpoints") or ())),
        nodes=tuple(map(str, value.get("nodes") or ())),
        ca=pems["ca"],
        client=CertificateAndKey(crt=pems["crt"], key=pems["key"]),
    )
