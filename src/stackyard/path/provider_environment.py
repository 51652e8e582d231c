"""What a Proxmox provider finds in its environment: the endpoint, the credentials, whom to trust.

The built-in provider pins a fingerprint itself. bpg's provider cannot: it verifies by authorities and names,
or does not verify. It is given the pinned certificate as its only authority, so that no other server gets the
token. Verification is off only where the user says so (`PROXMOX_VE_INSECURE`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base import directories, files
from stackyard.clients import proxmox
from stackyard.clients.proxmox.certificate import CertificateNamesError, fetch_pinned_certificate
from stackyard.render import Provider

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.path.target import Resolved, SshAccess

__all__ = ["bpg_environment", "provider_block", "provider_environment"]

_CERTIFICATE_FILE = "proxmox-certificate.pem"
_NO_AUTHORITIES = "no-authorities"


def provider_block(resolved: Resolved) -> Provider:
    """Return the provider as it is rendered: with the login to the nodes that bpg's takes from there."""
    ssh = resolved.ssh
    return Provider() if ssh is None else Provider(ssh_user=ssh.user, ssh_nodes=ssh.nodes)


def provider_environment(resolved: Resolved) -> Mapping[str, str]:
    """Return what both providers are given; the built-in one is handed its logins besides."""
    connection = resolved.connection
    environment = {"PROXMOX_VE_ENDPOINT": connection.endpoint}
    credentials = connection.credentials
    if isinstance(credentials, proxmox.Token):
        environment["PROXMOX_VE_API_TOKEN"] = credentials.text
    elif isinstance(credentials, proxmox.Login):
        environment |= {
            "PROXMOX_VE_USERNAME": credentials.username,
            "PROXMOX_VE_PASSWORD": credentials.password,
        }
    if not connection.trust.verify:
        environment["PROXMOX_VE_INSECURE"] = "true"
    if connection.trust.fingerprint is not None:
        environment["PROXMOX_VE_FINGERPRINT"] = connection.trust.fingerprint
    return environment


def _login_environment(access: SshAccess) -> Mapping[str, str]:
    """Return everything that bpg's provider can log in with: it tries the agent, a key, then the password.

    Raises:
        SshConfigError: The settings of OpenSSH cannot be read.
    """
    from stackyard.clients.ssh.openssh import resolve_login  # lazy: asyncssh, for bpg's provider alone
    from stackyard.clients.ssh.shell import first_usable_key  # lazy: as above

    # It has one key, one agent and one password for all nodes.
    login = resolve_login(next(iter(access.logins.values()), access.other))
    environment = {} if login.password is None else {"PROXMOX_VE_SSH_PASSWORD": login.password}
    if login.agent_socket is not None:
        environment |= {"PROXMOX_VE_SSH_AGENT": "true", "SSH_AUTH_SOCK": login.agent_socket}
    key = first_usable_key(login)
    return environment if key is None else {**environment, "PROXMOX_VE_SSH_PRIVATE_KEY": key}


async def bpg_environment(resolved: Resolved, folder: Path) -> Mapping[str, str]:
    """Return what bpg's provider is given; a fingerprint becomes the only authority that it trusts.

    This is for plan, apply and destroy. To download providers, the engine needs the system's authorities.

    Args:
        resolved: The target.
        folder: The private work folder of the target, for the certificate.

    Raises:
        UntrustedServerError: The server has another certificate than the pinned one.
        CertificateNamesError: The provider would not accept the pinned one: other names, or expired.
        ProxmoxUnreachableError: The server does not answer.
        FileError: The folder cannot be written.
    """
    environment = dict(provider_environment(resolved))
    if resolved.ssh is not None:
        environment |= _login_environment(resolved.ssh)
    trust = resolved.connection.trust
    if trust.fingerprint is None or not trust.verify:
        return environment
    try:
        pem = await fetch_pinned_certificate(resolved.connection)
    except CertificateNamesError as err:
        raise CertificateNamesError(
            err.call,
            f"{err.detail} bpg's provider checks that, also with a pinned fingerprint.",
            remedy=f"{err.default_remedy} The built-in provider needs the fingerprint alone.",
        ) from err
    certificate = folder / _CERTIFICATE_FILE
    files.replace_file(certificate, pem)
    # Go adds the authorities of a folder to those of the file: without one of ours it reads the system's.
    empty = directories.ensure_private(folder / _NO_AUTHORITIES)
    return {
        **environment,
        "SSL_CERT_FILE": str(certificate.absolute()),
        "SSL_CERT_DIR": str(empty.absolute()),
    }
