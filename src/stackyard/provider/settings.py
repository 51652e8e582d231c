"""The provider block of a configuration, and the environment where it is silent, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.clients.ssh.socks5 import Socks5
from stackyard.provider.problems import ProviderSettingsError
from stackyard.provider.values import Object, get_known

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SSH_PORT", "Settings", "SshNode", "SshSettings", "read_settings"]

_TRUE = ("1", "t", "true", "yes")
SSH_PORT = 22
_HIGHEST_PORT = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class SshNode:
    """Where the SSH server of a node is, when the API cannot tell."""

    address: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSettings:
    """How to log in to nodes over SSH.

    Attributes:
        username: Who logs in.
        password: With this, or
        private_key: with this, or
        use_agent: with what an agent has,
        agent_socket: which is there.
        forwards_agent: Whether commands on a node may use that agent.
        socks5: The proxy that leads to the nodes, where there is one.
        nodes: Where single nodes are.
        by_name: Whether the others are found by their names in place of what the API says.
    """

    username: str
    password: str | None = field(default=None, repr=False)
    private_key: str | None = field(default=None, repr=False)
    use_agent: bool = False
    agent_socket: str | None = None
    forwards_agent: bool = False
    socks5: Socks5 | None = None
    nodes: Mapping[str, SshNode] = field(default_factory=dict)
    by_name: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that the provider gets.

    Attributes:
        connection: Where the API is and who we are.
        ssh: How to reach the nodes themselves.
        random_vm_ids: The range from which vm ids are drawn, in place of the next free one.
        temporary: The folder for files that are downloaded here first; the usual one when absent.
    """

    connection: proxmox.Connection
    ssh: SshSettings
    random_vm_ids: tuple[int, int] | None = None
    temporary: str | None = None


def read_settings(config: Object, environment: Mapping[str, str]) -> Settings:
    """Return the settings of a provider block.

    Raises:
        ProviderSettingsError: The endpoint or the credentials are missing, or something is not supported.
        EndpointError: One of them has the wrong form.
    """
    reader = _Reader(config, environment)
    endpoint = reader.text("endpoint", "PROXMOX_VE_ENDPOINT")
    if not endpoint:
        raise ProviderSettingsError("The provider has no endpoint: set `endpoint` or PROXMOX_VE_ENDPOINT.")
    connection = proxmox.Connection(
        endpoint=endpoint, credentials=_credentials(reader), trust=_trust(reader, environment)
    )
    connection.base_url()
    return Settings(
        connection=connection,
        ssh=_ssh(reader),
        random_vm_ids=_random_ids(reader),
        temporary=reader.text("tmp_dir", "PROXMOX_VE_TMPDIR") or environment.get("PM_VE_TMPDIR") or None,
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    config: Object
    environment: Mapping[str, str]

    def text(self, name: str, variable: str = "") -> str | None:
        """Return a setting, from the environment when the configuration is silent; empty is none."""
        value = get_known(self.config, name)
        return (self.environment.get(variable) if value is None else str(value)) or None

    def flag(self, name: str, variable: str) -> bool:
        value = get_known(self.config, name)
        return self.environment.get(variable, "").lower() in _TRUE if value is None else bool(value)

    def inner(self, name: str) -> _Reader:
        blocks = get_known(self.config, name)
        return _Reader(blocks[0] if blocks else {}, self.environment)


def _credentials(reader: _Reader) -> proxmox.Token | proxmox.Ticket | proxmox.Login:
    token = reader.text("api_token", "PROXMOX_VE_API_TOKEN")
    if token:
        return proxmox.Token(text=token)
    ticket = reader.text("auth_ticket", "PROXMOX_VE_AUTH_TICKET")
    csrf_token = reader.text("csrf_prevention_token", "PROXMOX_VE_CSRF_PREVENTION_TOKEN")
    if ticket and csrf_token:
        return proxmox.Ticket(ticket=ticket, csrf_token=csrf_token)
    username = reader.text("username", "PROXMOX_VE_USERNAME")
    password = reader.text("password", "PROXMOX_VE_PASSWORD")
    if username and password:
        return proxmox.Login(username=username, password=password, otp=reader.text("otp", "PROXMOX_VE_OTP"))
    raise ProviderSettingsError(
        "The provider has no credentials: set `api_token`, or `username` and `password`, or their "
        "variables PROXMOX_VE_API_TOKEN, PROXMOX_VE_USERNAME and PROXMOX_VE_PASSWORD."
    )


def _trust(reader: _Reader, environment: Mapping[str, str]) -> proxmox.Trust:
    """Return how the server is verified; the fingerprint and the authority are settings of our own."""
    oldest = reader.text("min_tls", "PROXMOX_VE_MIN_TLS") or proxmox.TlsVersion.V1_3.value
    try:
        min_tls = proxmox.TlsVersion(oldest)
    except ValueError as err:
        raise ProviderSettingsError(f"`min_tls` is {oldest!r}, not one of 1.0, 1.1, 1.2, 1.3.") from err
    fingerprint = environment.get("PROXMOX_VE_FINGERPRINT") or None
    return proxmox.Trust(
        verify=not reader.flag("insecure", "PROXMOX_VE_INSECURE"),
        fingerprint=fingerprint,
        ca_pem=environment.get("PROXMOX_VE_CA_PEM") or None,
        min_tls=min_tls,
    )


def _ssh(reader: _Reader) -> SshSettings:
    block = reader.inner("ssh")
    username = reader.text("username", "PROXMOX_VE_USERNAME") or ""
    nodes = {
        str(node["name"]): SshNode(address=str(node["address"]), port=int(node.get("port") or SSH_PORT))
        for node in get_known(block.config, "node") or ()
    }
    return SshSettings(
        username=block.text("username", "PROXMOX_VE_SSH_USERNAME") or username.partition("@")[0] or "root",
        password=block.text("password", "PROXMOX_VE_SSH_PASSWORD")
        or reader.text("password", "PROXMOX_VE_PASSWORD"),
        private_key=block.text("private_key", "PROXMOX_VE_SSH_PRIVATE_KEY"),
        use_agent=block.flag("agent", "PROXMOX_VE_SSH_AGENT"),
        agent_socket=block.text("agent_socket", "SSH_AUTH_SOCK")
        or block.text("", "PROXMOX_VE_SSH_AUTH_SOCK"),
        forwards_agent=block.flag("agent_forwarding", "PROXMOX_VE_SSH_AGENT_FORWARDING"),
        socks5=_socks5(block),
        nodes=nodes,
        by_name=_is_by_name(block),
    )


def _socks5(block: _Reader) -> Socks5 | None:
    server = block.text("socks5_server", "PROXMOX_VE_SSH_SOCKS5_SERVER")
    username = block.text("socks5_username", "PROXMOX_VE_SSH_SOCKS5_USERNAME") or ""
    password = block.text("socks5_password", "PROXMOX_VE_SSH_SOCKS5_PASSWORD") or ""
    if server is None:
        if username or password:
            raise ProviderSettingsError(
                "`ssh.socks5_username` and `ssh.socks5_password` need `ssh.socks5_server`."
            )
        return None
    address, _, port = server.rpartition(":")
    if not address or not port.isdigit() or not 0 < int(port) <= _HIGHEST_PORT:
        raise ProviderSettingsError(f"`ssh.socks5_server` is {server!r}, which is not HOST:PORT.")
    return Socks5(address=address.strip("[]"), port=int(port), username=username, password=password)


def _is_by_name(block: _Reader) -> bool:
    source = block.text("node_address_source") or "api"
    if source not in ("api", "dns"):
        raise ProviderSettingsError(f"`ssh.node_address_source` is {source!r}, not one of api, dns.")
    return source == "dns"


def _random_ids(reader: _Reader) -> tuple[int, int] | None:
    if not get_known(reader.config, "random_vm_ids"):
        return None
    first: Any = get_known(reader.config, "random_vm_id_start")
    last: Any = get_known(reader.config, "random_vm_id_end")
    return int(first or 10000), int(last or 99999)
