"""Reading a kubeconfig: where the API server is, which authority it has, and who we are."""

from __future__ import annotations

import base64
import binascii
import contextlib
import datetime
import os
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
import yarl
from cryptography import x509

from stackyard.base import files
from stackyard.base.documents.limits import SMALL
from stackyard.base.documents.yamltext import parse_yaml
from stackyard.base.errors import Location
from stackyard.clients.kubernetes.failures import KubeconfigError

__all__ = ["ClusterAccess", "parse_kubeconfig", "read_kubeconfig", "rename_context"]

_DESCRIPTORS = Path("/proc/self/fd")
# What other programs would have to be started for, and old ways that no cluster of today offers.
_UNSUPPORTED = ("exec", "auth-provider", "username")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAccess:
    """How to reach the API of one cluster; what is secret is not in its repr.

    Attributes:
        server: The address of the API server.
        authority_pem: The authorities that its certificate must be signed by; None takes those of the system.
        certificate_pem: The client's certificate, where it has one.
        key_pem: The private key of the client's certificate.
        token: A bearer token, where that is how the client logs in.
        server_name: The name in the server's certificate, where it is not that of the address.
        name: The name of the context in the kubeconfig.
        namespace: The namespace of objects that name none.
    """

    server: str
    authority_pem: bytes | None = field(default=None, repr=False)
    certificate_pem: bytes | None = field(default=None, repr=False)
    key_pem: bytes | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    server_name: str | None = None
    name: str = ""
    namespace: str = "default"

    def make_context(self) -> ssl.SSLContext:
        """Return the TLS context of a client.

        Raises:
            KubeconfigError: A certificate or key cannot be used.
        """
        try:
            authority = None if self.authority_pem is None else self.authority_pem.decode("ascii")
            context = ssl.create_default_context(cadata=authority)
            if self.certificate_pem and self.key_pem:
                self._check_age(self.certificate_pem)
                with _open_secret(self.key_pem + b"\n" + self.certificate_pem) as path:
                    # The password callback keeps OpenSSL from asking the terminal for one.
                    context.load_cert_chain(path, password=lambda: "")
        except (ssl.SSLError, ValueError) as err:
            why = getattr(err, "reason", None) or "not readable PEM"
            raise KubeconfigError(
                f"A certificate of the context {self.name!r} cannot be used: {why}."
            ) from err
        return context

    def _check_age(self, pem: bytes) -> None:
        """Refuse a certificate that has expired: servers refuse it in words that do not say so."""
        ends = x509.load_pem_x509_certificate(pem).not_valid_after_utc
        now = datetime.datetime.now(datetime.UTC)
        if ends < now:
            raise KubeconfigError(
                f"The client certificate of the context {self.name!r} expired at {ends:%Y-%m-%d %H:%M} UTC; "
                f"the clock of this machine says {now:%Y-%m-%d %H:%M} UTC.",
                remedy="Get a new kubeconfig from the cluster; if the date is wrong, correct the clock.",
            )

    def list_secrets(self) -> tuple[str, ...]:
        """Return the values that must not appear in any text."""
        key = () if self.key_pem is None else (self.key_pem.decode("ascii", "replace"),)
        return key if self.token is None else (*key, self.token)


def read_kubeconfig(path: Path, context: str | None = None) -> ClusterAccess:
    """Read a kubeconfig from a file.

    Args:
        path: The file.
        context: The name of the context; None takes the current one.

    Raises:
        KubeconfigError: It has no such context, or nothing that can be used.
        FileError: A file cannot be read.
    """
    try:
        return parse_kubeconfig(files.read_text(path), context, folder=path.parent)
    except KubeconfigError as err:
        raise KubeconfigError(err.detail, where=Location(str(path))) from err


def parse_kubeconfig(text: str, context: str | None = None, *, folder: Path | None = None) -> ClusterAccess:
    """Read a kubeconfig; see `read_kubeconfig`.

    Args:
        text: The kubeconfig.
        context: The name of the context; None takes the current one.
        folder: What the files that it names are relative to; None refuses files.
    """
    try:
        document = parse_yaml(text, SMALL)
    except yaml.MarkedYAMLError as err:
        line = "" if err.problem_mark is None else f" (line {err.problem_mark.line + 1})"
        raise KubeconfigError(f"The kubeconfig is not YAML{line}.") from None
    except yaml.YAMLError:
        raise KubeconfigError("The kubeconfig is not YAML.") from None
    if not isinstance(document, Mapping):
        raise KubeconfigError("The kubeconfig is empty or not a mapping.")
    wanted = context or document.get("current-context")
    if not isinstance(wanted, str) or not wanted:
        raise KubeconfigError("The kubeconfig has no current-context, and no context was named.")
    chosen = _find(document, "contexts", "context", wanted)
    cluster = _find(document, "clusters", "cluster", str(chosen.get("cluster") or ""))
    user = _find(document, "users", "user", str(chosen.get("user") or ""))
    return _read_access(wanted, chosen, cluster, user, folder)


def rename_context(text: str, name: str) -> str:
    """Return a kubeconfig whose current context has another name.

    Raises:
        KubeconfigError: It is none, or has no current context.
    """
    current = parse_kubeconfig(text).name
    document = parse_yaml(text, SMALL)
    contexts = [{**row, "name": name} if row.get("name") == current else row for row in document["contexts"]]
    return yaml.safe_dump({**document, "contexts": contexts, "current-context": name}, sort_keys=False)


def _read_access(
    name: str,
    context: Mapping[str, Any],
    cluster: Mapping[str, Any],
    user: Mapping[str, Any],
    folder: Path | None,
) -> ClusterAccess:
    _check_ways(name, cluster, user)
    server = str(cluster.get("server") or "")
    address = yarl.URL(server)
    if address.scheme not in ("https", "http") or not address.host:
        raise KubeconfigError(f"The cluster of the context {name!r} has no usable `server`.")
    certificate, key = _bytes(user, "client-certificate", folder), _bytes(user, "client-key", folder)
    if (certificate is None) != (key is None):
        raise KubeconfigError(f"The user of the context {name!r} needs client-certificate and client-key.")
    token = user.get("token")
    if token is None and user.get("tokenFile"):
        token = _read_file(str(user["tokenFile"]), "tokenFile", folder).decode("utf-8", "replace").strip()
    return ClusterAccess(
        server=server.rstrip("/"),
        authority_pem=_bytes(cluster, "certificate-authority", folder),
        certificate_pem=certificate,
        key_pem=key,
        token=None if token is None else str(token),
        server_name=cluster.get("tls-server-name"),
        name=name,
        namespace=str(context.get("namespace") or "default"),
    )


def _check_ways(name: str, cluster: Mapping[str, Any], user: Mapping[str, Any]) -> None:
    """Refuse ways of connecting that are not supported or not safe."""
    for way in _UNSUPPORTED:
        if user.get(way):
            raise KubeconfigError(
                f"The user of the context {name!r} logs in with `{way}`, which stackyard does not support.",
                remedy="Use a kubeconfig with a client certificate or a token.",
            )
    if cluster.get("insecure-skip-tls-verify"):
        raise KubeconfigError(
            f"The cluster of the context {name!r} has insecure-skip-tls-verify.",
            remedy="Give the authority of the API server as certificate-authority-data instead.",
        )


def _find(document: Mapping[str, Any], rows: str, key: str, name: str) -> Mapping[str, Any]:
    listed = document.get(rows)
    found = listed if isinstance(listed, list) else []
    for row in found:
        if isinstance(row, Mapping) and row.get("name") == name and isinstance(row.get(key), Mapping):
            return dict(row[key])
    names = ", ".join(str(row.get("name")) for row in found if isinstance(row, Mapping)) or "none"
    raise KubeconfigError(f"The kubeconfig has no {key} {name!r} in `{rows}`; it has {names}.")


def _bytes(row: Mapping[str, Any], key: str, folder: Path | None) -> bytes | None:
    """Return the value of `KEY-data`, or what is in the file that KEY names."""
    if (encoded := row.get(f"{key}-data")) is not None:
        try:
            return base64.b64decode(str(encoded), validate=True)
        except (binascii.Error, ValueError):
            raise KubeconfigError(f"{key}-data of the kubeconfig is not base64.") from None
    return _read_file(str(row[key]), key, folder) if row.get(key) else None


def _read_file(name: str, key: str, folder: Path | None) -> bytes:
    if folder is None:
        raise KubeconfigError(f"The kubeconfig names a file in {key}, and must hold the value itself here.")
    return files.read_text(folder / name).encode()


@contextlib.contextmanager
def _open_secret(data: bytes) -> Iterator[str]:
    """Give a path to read a secret from: OpenSSL loads keys from files only."""
    if hasattr(os, "memfd_create") and _DESCRIPTORS.is_dir():
        with open(os.memfd_create("key", os.MFD_CLOEXEC), "wb") as memory:
            memory.write(data)
            memory.flush()
            yield str(_DESCRIPTORS / str(memory.fileno()))
        return
    # Ours alone, and gone at the end of the block.
    with tempfile.NamedTemporaryFile(prefix="stackyard-tls-") as stream:
        stream.write(data)
        stream.flush()
        yield stream.name
