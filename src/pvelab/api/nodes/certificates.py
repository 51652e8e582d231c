"""Certificates of a node: `/nodes/{node}/certificates`.

`pve-ssl.pem` of the first node is the certificate that the lab serves. As in Proxmox, each other node of a
cluster has one of its own, which belongs to an address that the lab does not answer on. A custom one,
uploaded or ordered, is kept and shown as `pveproxy-ssl.pem`; the lab does not serve it, so that its clients
keep the one that they trust. An order is fulfilled by the lab itself, without asking any authority.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from pvelab.api.nodes.settings.config import load_config
from pvelab.faults.latency import Work
from pvelab.server.params import properties
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from stackyard.base import serving

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.tasks import Task

__all__ = [
    "index_acme",
    "index_certificates",
    "list_certificates",
    "order_certificate",
    "remove_custom",
    "renew_certificate",
    "revoke_certificate",
    "upload_custom",
]

_COLLECTION = "certificates"
_DECLARED_AT = "PUT /nodes/{node}/config"
_MOST_DOMAINS = 6
_ORDERED_DAYS = 90
_RENEW_WITHIN_S = 30 * 86400
_CUSTOM = "pveproxy-ssl.pem"


@route("GET /nodes/{node}/certificates")
def index_certificates(_call: Call) -> Any:
    """List what there is of certificates."""
    return [{"name": name} for name in ("acme", "custom", "info")]


@route("GET /nodes/{node}/certificates/acme")
def index_acme(_call: Call) -> Any:
    """List what can be ordered."""
    return [{"name": "certificate"}]


@route("GET /nodes/{node}/certificates/info")
def list_certificates(call: Call) -> Any:
    """List the certificates of a node."""
    own = call.store.get(_COLLECTION, f"own|{call.node}") or call.store.get(_COLLECTION, "served") or {}
    served = str(own.get("pem", ""))
    shown = [_info(name, served) for name in ("pve-root-ca.pem", "pve-ssl.pem") if served]
    custom = call.store.get(_COLLECTION, call.node)
    return [*shown, *([_info(_CUSTOM, str(custom["pem"]))] if custom is not None else [])]


@route("POST /nodes/{node}/certificates/custom")
def upload_custom(call: Call) -> Any:
    """Take a certificate and its key."""
    pem, key = str(call.params["certificates"]).strip() + "\n", call.params.get("key")
    present, forced = call.store.get(_COLLECTION, call.node), bool(call.params.get("force"))
    if key is None and present is None:
        text = "Attempted to upload custom certificate without (existing) key."
        raise bad_parameter("key", text)
    if present is not None and not forced:
        raise PveError("Custom certificate file exists but force flag is not set.")
    key_pem = str(key if key is not None else (present or {}).get("key", ""))
    _require_pair(pem, key_pem)
    call.store.put(_COLLECTION, call.node, {"pem": pem, "key": key_pem})
    return _info(_CUSTOM, pem)


@route("DELETE /nodes/{node}/certificates/custom")
def remove_custom(call: Call) -> Any:
    """Remove the custom certificate; there need not be one."""
    call.store.delete(_COLLECTION, call.node)


@route("POST /nodes/{node}/certificates/acme/certificate")
def order_certificate(call: Call) -> Any:
    """Order a certificate for the domains of the node's configuration, in a task."""
    if call.store.get(_COLLECTION, call.node) is not None and not call.params.get("force"):
        raise bad_parameter("force", "Custom certificate exists but 'force' is not set.")
    return _order(call, "acmenewcert")


@route("PUT /nodes/{node}/certificates/acme/certificate")
def renew_certificate(call: Call) -> Any:
    """Order the certificate again, in a task, if it is about to expire or if forced to."""
    present = call.store.get(_COLLECTION, call.node)
    if present is None:
        raise PveError("No current (custom) certificate found, please order a new certificate!")
    expires = int(_info(_CUSTOM, str(present["pem"]))["notafter"])
    if expires > call.now() + _RENEW_WITHIN_S and not call.params.get("force"):
        text = "Certificate does not expire within the next 30 days, and 'force' is not set."
        raise bad_parameter("force", text)
    return _order(call, "acmerenew")


@route("DELETE /nodes/{node}/certificates/acme/certificate")
def revoke_certificate(call: Call) -> Any:
    """Revoke the certificate and remove it, in a task."""
    store, node = call.store, call.node
    account, _ = _read_acme_config(call)
    if store.get(_COLLECTION, node) is None:
        raise PveError(f"can't open '/etc/pve/nodes/{node}/{_CUSTOM}' - No such file or directory")

    async def work(task: Task) -> None:
        _require_account(call, account)
        task.log("Loading ACME account details")
        task.log("Revoking old certificate")
        await task.spend(Work.CONFIG)
        with task.step():
            task.log("Deleting certificate files")
            store.delete(_COLLECTION, node)
            task.log("Restarting pveproxy to revert to self-signed certificates")

    return call.start_task("acmerevoke", "", work)


def _order(call: Call, kind: str) -> str:
    store, node = call.store, call.node
    account, domains = _read_acme_config(call)

    async def work(task: Task) -> None:
        _require_account(call, account)
        task.log("Loading ACME account details")
        task.log(f"Placing ACME order for domains: {', '.join(domains)}")
        for domain in domains:
            task.log(f"The validation for {domain} is pending!")
            task.log(f"Status is 'valid', domain '{domain}' OK!")
        task.log("All domains validated!")
        await task.spend(Work.CREATE)
        try:
            made = serving.make_certificate(domains, days=_ORDERED_DAYS)
        except serving.CertificateError as err:
            raise PveError(f"order status: invalid ({err})") from err
        with task.step():
            task.log("Setting pveproxy certificate and key")
            kept = {"pem": made.certificate_pem.decode(), "key": made.key_pem.decode()}
            store.put(_COLLECTION, node, kept)
            task.log("Restarting pveproxy")
        if kind == "acmerenew":
            task.log("Revoking old certificate")

    return call.start_task(kind, "", work)


def _read_acme_config(call: Call) -> tuple[str, list[str]]:
    """Return the account and the domains of the node's configuration."""
    config, facts = load_config(call, call.node), call.world.facts
    acme = properties.parse(facts.schema(_DECLARED_AT, "acme")["format"], str(config.get("acme", "")))
    domains = [domain for domain in str(acme.get("domains", "")).split(";") if domain]
    schema = facts.schema(_DECLARED_AT, "acmedomain[n]")["format"]
    for number in range(_MOST_DOMAINS):
        if f"acmedomain{number}" in config:
            parsed = properties.parse(schema, str(config[f"acmedomain{number}"]))
            domains.append(str(parsed["domain"]).lower())
    if not domains:
        raise PveError("ACME domain list in node configuration is missing!", status=400)
    return str(acme.get("account", "default")), domains


def _require_account(call: Call, account: str) -> None:
    if call.store.get("acme_accounts", account) is None:
        raise PveError(f"ACME account config file '{account}' does not exist.")


def _require_pair(pem: str, key: str) -> None:
    try:
        certificate = x509.load_pem_x509_certificate(pem.encode())
    except ValueError as err:
        text = "could not load certificate (chain)"
        raise PveError(f"Setting certificate files failed - {text}") from err
    try:
        private = serialization.load_pem_private_key(key.encode(), password=None)
    except (ValueError, TypeError) as err:
        text = "key does not match the certificate (chain)"
        raise PveError(f"Setting certificate files failed - {text}") from err
    own, other = private.public_key(), certificate.public_key()
    form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    if own.public_bytes(*form) != other.public_bytes(*form):
        text = "key does not match the certificate (chain)"
        raise PveError(f"Setting certificate files failed - {text}")


def _info(filename: str, pem: str) -> dict[str, Any]:
    certificate = x509.load_pem_x509_certificate(pem.encode())
    return {
        "filename": filename,
        "fingerprint": certificate.fingerprint(hashes.SHA256()).hex(":").upper(),
        "subject": _name(certificate.subject),
        "issuer": _name(certificate.issuer),
        "notbefore": int(certificate.not_valid_before_utc.timestamp()),
        "notafter": int(certificate.not_valid_after_utc.timestamp()),
        # Of a chain, Proxmox shows the certificate of the server alone.
        "pem": certificate.public_bytes(serialization.Encoding.PEM).decode(),
        "san": _alternatives(certificate),
        **_key(certificate),
    }


def _name(name: x509.Name) -> str:
    return "".join(f"/{part.rfc4514_string()}" for part in name)


def _alternatives(certificate: x509.Certificate) -> list[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return [
        name.value.exploded if isinstance(name, x509.IPAddress) else str(name.value) for name in found.value
    ]


def _key(certificate: x509.Certificate) -> dict[str, Any]:
    key = certificate.public_key()
    if isinstance(key, rsa.RSAPublicKey):
        return {"public-key-type": "rsaEncryption", "public-key-bits": key.key_size}
    if isinstance(key, ec.EllipticCurvePublicKey):
        return {"public-key-type": "id-ecPublicKey", "public-key-bits": key.key_size}
    if isinstance(key, ed25519.Ed25519PublicKey):
        return {"public-key-type": "ED25519", "public-key-bits": 256}
    return {}
