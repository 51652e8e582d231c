"""The client of a guest: fetches its spec from the controller that it knows, and keeps the one before.

It knows the controller by its pinned key or certificate, by an authority of the user, or by those of the
system; and says by its errors, and so by the status of the command, whose fault a failure is.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import os
import ssl
import urllib.parse
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base import directories, files
from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import SMALL
from stackyard.base.errors import ExitStatus, FileError, StackyardError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = [
    "ServerRefusedError",
    "ServerSilentError",
    "SpecInvalidError",
    "SpecMissingError",
    "SpecSource",
    "fetch_spec",
    "is_healthy",
    "load_spec",
    "read_environment",
    "save_spec",
]

_LARGEST_BYTES = 16 * 2**20
_REFUSED = (400, 401, 403)
_UNPROCESSABLE = 422


class ServerRefusedError(StackyardError):
    """The controller does not give this guest the spec: no token, a wrong one, or a wrong request."""

    code = "E-SPEC-REFUSED"
    summary = "The controller refuses"
    default_remedy = (
        "Check STACKYARD_IDENTITY and STACKYARD_TOKEN; `stackyard serve token issue` makes a token."
    )


class ServerSilentError(StackyardError):
    """The controller cannot be reached, is not the one that is known, or has no spec for this guest."""

    code = "E-SPEC-UNREACHABLE"
    summary = "The spec cannot be fetched"
    default_remedy = "Check STACKYARD_SERVER and STACKYARD_PIN, and that `stackyard serve status` is healthy."
    exit_status = ExitStatus.CHANGES


class SpecInvalidError(StackyardError):
    """The spec of this guest is not valid: the controller says so, or what it sent is no spec."""

    code = "E-SPEC-INVALID"
    summary = "The spec is not valid"
    default_remedy = "Correct it where the controller runs: `stackyard spec validate`."
    exit_status = ExitStatus.INVALID_SPEC


class SpecMissingError(StackyardError):
    """There is no spec that could be applied."""

    code = "E-SPEC-MISSING"
    summary = "There is no spec"
    default_remedy = "Fetch it with `stackyard spec get`."


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecSource:
    """Where a spec is fetched, and how the controller and the guest know each other.

    Attributes:
        server: The address of the controller.
        identity: Who asks.
        token: What the guest proves itself with; empty for none.
        pin: The SHA-256 of the controller's public key, `sha256//...`; or None.
        fingerprint: The SHA-256 of its certificate, `AB:CD:...`; or None.
        ca_cert: A file with the authorities to trust; or None for those of the system.
        is_insecure: Whether any certificate will do.
        timeout_s: How long to wait for it.
    """

    server: str
    identity: str
    token: str = field(default="", repr=False)
    pin: str | None = None
    fingerprint: str | None = None
    ca_cert: Path | None = None
    is_insecure: bool = False
    timeout_s: float = 30.0


def fetch_spec(place: SpecSource) -> dict[str, Any]:
    """Return the spec of a guest.

    Raises:
        ServerRefusedError: The controller says that the guest may not have it.
        ServerSilentError: It cannot be reached, is another one, or has none.
        SpecInvalidError: The spec is not valid.
    """
    status, body = _answer(place, f"/spec/{urllib.parse.quote(place.identity, safe='')}")
    if status == 200:
        return _spec(body)
    try:
        said = str(parse_json(body, SMALL)["error"]["message"])
    except (JsonError, KeyError, TypeError):
        said = "no reason given"
    detail = f"{place.server} answers {status} for '{place.identity}': {said}"
    if status in _REFUSED:
        raise ServerRefusedError(detail)
    raise SpecInvalidError(detail) if status == _UNPROCESSABLE else ServerSilentError(detail)


def is_healthy(place: SpecSource) -> bool:
    """Return whether the controller that is known answers there and says that it is well."""
    try:
        return _answer(place, "/health")[0] == 200
    except StackyardError:
        return False


def _answer(place: SpecSource, path: str) -> tuple[int, bytes]:
    address = urllib.parse.urlsplit(place.server)
    if address.scheme != "https" or not address.hostname:
        raise ServerRefusedError(f"{place.server!r} is no address of a controller: https://HOST:PORT.")
    connection = http.client.HTTPSConnection(
        address.hostname, address.port, timeout=place.timeout_s, context=_context(place)
    )
    headers = {"Authorization": f"Bearer {place.token}"} if place.token else {}
    target = f"{address.path.rstrip('/')}{path}"
    try:
        connection.connect()
        _check_pins(place, connection)
        connection.request("GET", target, headers=headers)
        response = connection.getresponse()
        return response.status, response.read(_LARGEST_BYTES)
    except (OSError, http.client.HTTPException, ValueError) as err:
        raise ServerSilentError(f"{place.server} cannot be reached: {err}.") from err
    finally:
        connection.close()


def _context(place: SpecSource) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=None if place.ca_cert is None else str(place.ca_cert))
    except (OSError, ssl.SSLError) as err:
        raise FileError(f"{place.ca_cert} holds no certificates that can be used: {err}.") from err
    if place.is_insecure or place.pin or place.fingerprint:
        # With a pin the certificate is known itself, so that its name and authority do not matter.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _check_pins(place: SpecSource, connection: http.client.HTTPSConnection) -> None:
    """Refuse to send anything, the token above all, to someone else."""
    sock = connection.sock
    shown = (sock.getpeercert(True) if isinstance(sock, ssl.SSLSocket) else None) or b""
    if place.fingerprint is not None:
        wanted = place.fingerprint.replace(":", "").lower()
        if hashlib.sha256(shown).hexdigest() != wanted:
            raise ServerSilentError(f"{place.server} shows another certificate than the one that is pinned.")
    if place.pin is not None and place.pin != _pin(shown):
        raise ServerSilentError(f"{place.server} has another key than the one that is pinned.")


def _pin(der: bytes) -> str:
    from stackyard.base.serving.certificate import pin_of  # lazy: cryptography, only for a pin

    pem = b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(der) + b"-----END CERTIFICATE-----\n"
    return pin_of(pem)


def _spec(body: bytes) -> dict[str, Any]:
    try:
        found = parse_json(body, SMALL)
        if not isinstance(found, dict) or not {"access", "identity", "platform"} <= found.keys():
            raise ValueError
    except ValueError as err:
        raise SpecInvalidError("What the controller sent is no spec.") from err
    return found


def save_spec(path: Path, text: str) -> bool:
    """Keep a spec, and the one before it as `NAME.prev`; return whether it is another one.

    Raises:
        FileError: It cannot be written; the old one stays.
    """
    data = text.encode()
    directories.ensure_private(path.parent)
    try:
        before = path.read_bytes()
    except FileNotFoundError:
        before = None
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err
    if before == data:
        return False
    if before is not None:
        files.replace_file(path.with_name(f"{path.name}.prev"), before)
    files.replace_file(path, data)
    return True


def load_spec(path: Path) -> dict[str, Any]:
    """Return a spec that was saved, as JSON or YAML.

    Raises:
        SpecMissingError: There is none.
        SpecInvalidError: It is no spec.
    """
    if not path.exists():
        raise SpecMissingError(f"There is no {path}.")
    import yaml  # lazy: for a spec that someone wrote by hand

    from stackyard.base.documents.yamltext import parse_yaml  # lazy: as said

    try:
        found = parse_yaml(files.read_text(path))
    except yaml.YAMLError as err:
        raise SpecInvalidError(f"{path} is not YAML.") from err
    needed = {"identity", "access", "platform", "config"}
    if not isinstance(found, dict) or not needed <= found.keys() or "_posture" not in (found["access"] or {}):
        raise SpecInvalidError(f"{path} is not a resolved spec, as `stackyard spec get` saves it.")
    return found


def read_environment(values: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what the environment says of where to fetch a spec; the words of homestak count too."""
    found = os.environ if values is None else values
    names = {
        "server": ("STACKYARD_SERVER", "HOMESTAK_SERVER", "HOMESTAK_SPEC_SERVER"),
        "identity": ("STACKYARD_IDENTITY", "HOMESTAK_IDENTITY"),
        "token": ("STACKYARD_TOKEN", "HOMESTAK_AUTH_TOKEN", "HOMESTAK_TOKEN"),
        "pin": ("STACKYARD_PIN",),
    }
    return {
        key: next((found[name] for name in choice if found.get(name)), "") for key, choice in names.items()
    }
