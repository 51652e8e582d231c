"""Guests that fetch their own spec: who asks for which, by what proof, and what their first boot needs."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.base import directories
from stackyard.sources.site.entities.postures import AuthMethod
from stackyard.sources.site.postures import posture_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.desired import HostKey
    from stackyard.sources.site.load import Site

__all__ = [
    "BOOTSTRAP_PATH",
    "CERTIFICATE",
    "CERTIFICATE_FOLDER",
    "OWN_KEY_FILE",
    "Caller",
    "OwnBoot",
    "auth_method",
    "boot_parts",
    "callers",
    "pull_boot",
    "read_pin",
]

# The certificate of the controller, in the store of the site.
CERTIFICATE = "controller/certificate"
# Where a copy of it is for clients on the machine of the controller, from the root of the site.
CERTIFICATE_FOLDER = Path(directories.PROJECT_FOLDER) / "controller" / "certificate"
# The private key that was made with the site to log in to guests with, where the user had none.
OWN_KEY_FILE = Path(directories.PROJECT_FOLDER) / "ssh" / "id_ed25519"
BOOTSTRAP_PATH = "/usr/local/sbin/stackyard-bootstrap"
SETTINGS_PATH = "/etc/stackyard/guest.env"
_BOOTSTRAP = Path(__file__).with_name("bootstrap.sh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who may ask for a spec.

    Attributes:
        identity: The name to ask by: that of a guest, or of the spec itself.
        specs: The specs that the guests of this name want; more than one is a mistake of the site.
    """

    identity: str
    specs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBoot:
    """What one guest has of its own at its first boot.

    Attributes:
        host_key: Its host key, as the model has it; None where it makes its own.
        pull: The files and commands with which it fetches its spec, none where others configure it; None
            where that is as the site says (`spec_server`).
    """

    host_key: HostKey | None = None
    pull: Mapping[str, Any] | None = None


def callers(site: Site) -> Mapping[str, Caller]:
    """Return everyone who can ask for a spec, by name; a guest goes before a spec of the same name."""
    wanted: dict[str, dict[str, None]] = {}
    for identity, spec in _guests(site):
        wanted.setdefault(identity, {})[spec] = None
    named = {*site.specs, *site.broken["specs"]}
    found = {name: Caller(identity=name, specs=(name,)) for name in sorted(named)}
    return found | {name: Caller(identity=name, specs=tuple(specs)) for name, specs in wanted.items()}


def _guests(site: Site) -> Iterator[tuple[str, str]]:
    for env in site.envs:
        for guest in site.guests(env):
            spec = guest.values.get("spec")
            if spec:
                yield guest.name, str(spec)
    for manifest in site.manifests.values():
        for node in manifest.places.data.get("nodes", ()):
            if node.get("spec"):
                yield from ((name, str(node["spec"])) for name in _names(node))


def _names(node: Mapping[str, Any]) -> list[str]:
    """Return what the guests of a node are called: one of which there are several has numbers."""
    name, count = str(node["name"]), node.get("count")
    return [name] if count is None else [f"{name}-{number}" for number in range(1, int(count) + 1)]


def auth_method(site: Site, spec: str) -> AuthMethod:
    """Return how the caller for a spec that the site has proves itself."""
    return posture_of(site, site.specs[spec].model.access.posture).auth_method or AuthMethod.NETWORK


def pull_boot(site: Site, guest: str, spec: str | None) -> dict[str, Any]:
    """Return what the first boot of a guest has to write and run so that it fetches and applies its spec.

    Nothing, where the site names no server (`spec_server`) or the guest has no spec. The token is that of the
    spec's posture, by its name: no secret is in what is returned. A guest with something of its own has that.
    """
    own = site.own_boots.get(guest)
    if own is not None and own.pull is not None:
        return dict(own.pull)
    defaults = site.settings.defaults
    server = defaults.spec_server or defaults.server_url
    wanted = spec or guest
    if server is None or wanted not in site.specs:
        return {}
    method = auth_method(site, wanted)
    secret = {AuthMethod.SITE_TOKEN: "auth.site_token", AuthMethod.NODE_TOKEN: f"auth.node_tokens.{guest}"}
    token: Any = {"secret": secret[method]} if method in secret else ""
    return boot_parts(
        server=server, identity=guest, token=token, pin=defaults.spec_server_pin or read_pin(site)
    )


def boot_parts(*, server: str, identity: str, token: Any, pin: str | None) -> dict[str, Any]:
    """Return the files and commands of a first boot that fetches a spec, as fields of the model.

    Args:
        server: The address of the controller.
        identity: Who to ask as.
        token: The token to show: a text, or `{"secret": NAME}`; empty for none.
        pin: The SHA-256 of the controller's public key, as curl takes it; None trusts the authorities of the
            guest's own system.
    """
    lines = f"STACKYARD_SERVER={server}\nSTACKYARD_IDENTITY={identity}\nSTACKYARD_PIN={pin or ''}\n"
    settings = [f"{lines}STACKYARD_TOKEN=", token, "\n"] if isinstance(token, dict) else None
    plain = f"{lines}STACKYARD_TOKEN={token}\n"
    return {
        "files": [
            {"path": SETTINGS_PATH, "content": settings or plain, "mode": "0600"},
            {"path": BOOTSTRAP_PATH, "content": _bootstrap(), "mode": "0755"},
        ],
        "commands": [BOOTSTRAP_PATH],
        "packages": ["curl"],
    }


@functools.cache
def _bootstrap() -> str:
    return _BOOTSTRAP.read_text()


def read_pin(site: Site) -> str | None:
    """Return the pin of the certificate that a controller of this site has kept; None where there is none.

    Raises:
        StoreError: The store of the site cannot be read.
    """
    if not site.pins:
        with contextlib.closing(site.store.read()) as objects:
            stored = objects.get(CERTIFICATE)
        site.pins.append(None if stored is None else _pin(stored.data))
    return site.pins[0]


@functools.lru_cache(maxsize=4)
def _pin(pem: bytes) -> str | None:
    from stackyard.base.serving.certificate import CertificateError, pin_of  # lazy: cryptography costs 50 ms

    try:
        return pin_of(pem)
    except CertificateError:
        return None
