from __future__ import annotations

import pytest

from stackyard.clients import proxmox
from stackyard.clients.ssh.socks5 import Socks5
from stackyard.provider.problems import ProviderSettingsError
from stackyard.provider.settings import SshNode, read_settings
from stackyard.provider.values import UNKNOWN

ENDPOINT = {"endpoint": "https://pve.lan:8006/"}
TOKEN = "root@pam!ci=0000-canary"


def test_the_configuration_wins_over_the_environment() -> None:
    environment = {"PROXMOX_VE_ENDPOINT": "https://other:8006", "PROXMOX_VE_API_TOKEN": TOKEN}
    settings = read_settings({**ENDPOINT, "insecure": True}, environment)
    assert settings.connection.endpoint == ENDPOINT["endpoint"]
    assert settings.connection.credentials == proxmox.Token(text=TOKEN)
    assert settings.connection.trust.verify is False


def test_a_token_wins_over_a_ticket_and_a_ticket_over_a_password() -> None:
    login = {"username": "root@pam", "password": "pw"}
    ticket = {"auth_ticket": "PVE:root@pam:0::x", "csrf_prevention_token": "csrf"}
    assert isinstance(read_settings({**ENDPOINT, **login}, {}).connection.credentials, proxmox.Login)
    assert isinstance(
        read_settings({**ENDPOINT, **login, **ticket}, {}).connection.credentials, proxmox.Ticket
    )
    both = read_settings({**ENDPOINT, **login, **ticket, "api_token": TOKEN}, {})
    assert isinstance(both.connection.credentials, proxmox.Token)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "no endpoint"),
        ({"endpoint": ""}, "no endpoint"),
        (ENDPOINT, "no credentials"),
        ({**ENDPOINT, "username": "root@pam"}, "no credentials"),
        ({**ENDPOINT, "api_token": TOKEN, "min_tls": "0.9"}, "min_tls"),
        ({**ENDPOINT, "api_token": TOKEN, "ssh": [{"socks5_server": "proxy"}]}, "HOST:PORT"),
        ({**ENDPOINT, "api_token": TOKEN, "ssh": [{"socks5_server": "proxy:70000"}]}, "HOST:PORT"),
        (
            {**ENDPOINT, "api_token": TOKEN, "ssh": [{"socks5_password": "canary"}]},
            "need `ssh.socks5_server`",
        ),
        ({**ENDPOINT, "api_token": TOKEN, "ssh": [{"node_address_source": "x"}]}, "node_address_source"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_by_name(config: dict[str, object], said: str) -> None:
    with pytest.raises(ProviderSettingsError, match=said) as raised:
        read_settings(config, {})
    assert "canary" not in raised.value.detail


def test_an_unknown_setting_counts_as_absent() -> None:
    settings = read_settings(
        {**ENDPOINT, "api_token": TOKEN, "insecure": UNKNOWN}, {"PROXMOX_VE_INSECURE": "1"}
    )
    assert settings.connection.trust.verify is False


def test_ssh_falls_back_on_the_login_of_the_api() -> None:
    config = {**ENDPOINT, "username": "root@pam", "password": "pw"}
    node = {"name": "pve1", "address": "10.0.0.1", "port": None}
    ssh = read_settings({**config, "ssh": [{"node": [node]}]}, {}).ssh
    assert (ssh.username, ssh.password) == ("root", "pw")
    assert ssh.nodes == {"pve1": SshNode(address="10.0.0.1", port=22)}


def test_nodes_are_found_by_name_where_the_configuration_says_so() -> None:
    config = {**ENDPOINT, "api_token": TOKEN}
    found = [
        read_settings({**config, "ssh": [{"node_address_source": source}]}, {}).ssh.by_name
        for source in (None, "api", "dns")
    ]
    assert found == [False, False, True]


def test_vm_ids_are_drawn_from_the_range_that_is_given() -> None:
    config = {**ENDPOINT, "api_token": TOKEN}
    assert read_settings(config, {}).random_vm_ids is None
    drawn = read_settings({**config, "random_vm_ids": True, "random_vm_id_start": 500}, {})
    assert drawn.random_vm_ids == (500, 99999)


def test_ssh_settings_come_from_the_environment_where_the_block_is_silent() -> None:
    environment = {
        "PROXMOX_VE_SSH_AUTH_SOCK": "/run/agent",
        "PROXMOX_VE_SSH_AGENT_FORWARDING": "true",
        "PROXMOX_VE_SSH_SOCKS5_SERVER": "[fd00::1]:1080",
        "PROXMOX_VE_SSH_SOCKS5_USERNAME": "me",
        "PROXMOX_VE_SSH_SOCKS5_PASSWORD": "pw",
        "PROXMOX_VE_TMPDIR": "/var/tmp",
    }
    settings = read_settings({**ENDPOINT, "api_token": TOKEN}, environment)
    ssh = settings.ssh
    assert (ssh.agent_socket, ssh.forwards_agent, settings.temporary) == ("/run/agent", True, "/var/tmp")
    assert ssh.socks5 == Socks5(address="fd00::1", port=1080, username="me", password="pw")
    assert "pw" not in repr(ssh)
    chosen = read_settings(
        {**ENDPOINT, "api_token": TOKEN, "ssh": [{"agent_forwarding": False}]}, environment
    )
    assert chosen.ssh.forwards_agent is False
