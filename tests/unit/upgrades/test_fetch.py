"""Answers of servers are data: what is wrong with one becomes a reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.registries import Registries, serve_registries

from stackyard.engine.version import Version
from stackyard.upgrades.addresses import ModuleAddress, ProviderAddress
from stackyard.upgrades.cli_config import CliConfig
from stackyard.upgrades.fetch import Patience, SourceError, open_fetcher
from stackyard.upgrades.oci import OciRegistry, Repository
from stackyard.upgrades.registry import Registry

DISCOVERY = "/.well-known/terraform.json"
VERSIONS = "/providers/acme/thing/versions"


@pytest.fixture
def registries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registries]:
    with serve_registries(tmp_path) as found:
        monkeypatch.setenv("SSL_CERT_FILE", str(found.authority))
        monkeypatch.setenv("NO_PROXY", "localhost")
        found.providers["acme/thing"] = ("1.0.0",)
        found.modules["acme/vm/proxmox"] = ("1.0.0",)
        yield found


async def ask(registries: Registries, config: CliConfig | None = None) -> tuple[Version, ...]:
    async with open_fetcher(Patience(connect_s=5, whole_s=20)) as fetcher:
        registry = Registry(fetcher=fetcher, config=config or CliConfig())
        return await registry.versions(ProviderAddress(registries.host, "acme", "thing"))


async def test_services_are_discovered(registries: Registries) -> None:
    assert await ask(registries) == (Version(1, 0, 0),)
    async with open_fetcher() as fetcher:
        registry = Registry(fetcher=fetcher, config=CliConfig())
        address = ModuleAddress(registries.host, "acme", "vm", "proxmox")
        assert await registry.module_versions(address) == (Version(1, 0, 0),)
        assert await registry.module_versions(address) == (Version(1, 0, 0),)
    assert registries.asked.count("/modules/v1/acme/vm/proxmox/versions") == 1


@pytest.mark.parametrize(
    ("path", "status", "body", "headers", "reason"),
    [
        (DISCOVERY, 200, b"<html>", {}, "did not answer with JSON"),
        (DISCOVERY, 200, b"[]", {}, "is no registry of providers"),
        (DISCOVERY, 200, b'{"providers.v1": "http://localhost/"}', {}, "without HTTPS"),
        (DISCOVERY, 200, b'{"providers.v1": "https://[/"}', {}, "not valid"),
        (DISCOVERY, 302, b"", {"Location": DISCOVERY}, "redirects more than 5 times"),
        (DISCOVERY, 302, b"", {"Location": "http://localhost/x"}, "without HTTPS"),
        (VERSIONS, 500, b"\x1b[2J", {}, "answered 500"),
        (VERSIONS, 404, b"", {}, "has no provider acme/thing"),
        (VERSIONS, 403, b"", {}, "a login is needed"),
        (VERSIONS, 200, b"[" * 5000, {}, "did not answer with JSON"),
        (VERSIONS, 200, b" " * (16 * 2**20 + 1), {}, "larger than"),
    ],
)
async def test_a_wrong_answer_is_a_reason(
    registries: Registries, path: str, status: int, body: bytes, headers: dict[str, str], reason: str
) -> None:
    registries.answers[path] = (status, body, headers)
    with pytest.raises(SourceError, match=reason):
        await ask(registries)


async def test_nonsense_among_versions_is_left_out(registries: Registries) -> None:
    body = b'{"versions": [{"version": "1.0.0"}, {"version": "\\u001b[2J"}, 7, {"version": null}, {}]}'
    registries.answers[VERSIONS] = (200, body, {})
    assert await ask(registries) == (Version(1, 0, 0),)


async def test_a_certificate_that_nobody_trusts_is_refused(
    registries: Registries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(SourceError, match="cannot be verified"):
        await ask(registries)
    assert registries.asked == []


async def test_a_token_is_not_sent_to_where_a_redirect_leads(registries: Registries) -> None:
    registries.token = "mine"
    config = CliConfig(tokens={registries.host: "mine"})
    assert await ask(registries, config) == (Version(1, 0, 0),)
    # The same server under another name is another host: it gets no token, and refuses.
    other = f"https://127.0.0.1:{registries.port}{VERSIONS}"
    registries.answers[VERSIONS] = (307, b"", {"Location": f"{other}/again"})
    with pytest.raises(SourceError, match=r"127\.0\.0\.1 refuses the request \(401\)"):
        await ask(registries, config)
    assert "mine" not in repr(config)


async def test_pages_of_tags_are_followed_on_the_same_server_only(registries: Registries) -> None:
    registries.providers["acme/thing"] = [f"1.{number}.0" for number in range(7)]
    registries.page, registries.needs_oci_token = 2, True
    async with open_fetcher() as fetcher:
        registry = OciRegistry(fetcher=fetcher, config=CliConfig())
        assert len(await registry.versions(Repository(registries.host, "acme/thing"))) == 7
    link = {"Link": f'<https://127.0.0.1:{registries.port}/v2/acme/thing/tags/more>; rel="next"'}
    registries.answers["/v2/acme/thing/tags/list"] = (200, b'{"tags": ["1.0.0_b1", "latest", 4]}', link)
    async with open_fetcher() as fetcher:
        registry = OciRegistry(fetcher=fetcher, config=CliConfig())
        assert await registry.versions(Repository(registries.host, "acme/thing")) == (Version(1, 0, 0),)
    assert "/v2/acme/thing/tags/more" not in registries.asked


@pytest.mark.parametrize("realm", ["http://localhost/token", "https://[", ""])
async def test_a_token_is_asked_for_over_https_only(registries: Registries, realm: str) -> None:
    headers = {"WWW-Authenticate": f'Bearer realm="{realm}",service="x"'}
    registries.answers["/v2/acme/thing/tags/list"] = (401, b"", headers)
    async with open_fetcher() as fetcher:
        registry = OciRegistry(fetcher=fetcher, config=CliConfig())
        with pytest.raises(SourceError):
            await registry.versions(Repository(registries.host, "acme/thing"))
