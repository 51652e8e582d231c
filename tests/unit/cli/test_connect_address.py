"""An address may be typed as people type it: a host, with a port, from a browser."""

from __future__ import annotations

import pytest

from stackyard.cli.runs.connect import _complete_url
from stackyard.clients.proxmox import EndpointError


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("pve.home", "https://pve.home:8006"),
        ("pve.home:443", "https://pve.home:443"),
        ("192.0.2.10", "https://192.0.2.10:8006"),
        ("2001:db8::1", "https://[2001:db8::1]:8006"),
        ("[2001:db8::1]:8443", "https://[2001:db8::1]:8443"),
        ("https://pve.home:8006/", "https://pve.home:8006"),
        ("https://pve.home:8006/#v1:0:18:4:::::", "https://pve.home:8006"),
        ("https://proxy.example/", "https://proxy.example"),
    ],
)
def test_an_address_is_completed(given: str, meant: str) -> None:
    assert _complete_url(given) == meant


@pytest.mark.parametrize(
    "given", ["http://pve.home:8006", "https://root:secret@pve.home:8006", "https://", ""]
)
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(EndpointError) as refused:
        _complete_url(given)
    assert "secret" not in refused.value.detail
