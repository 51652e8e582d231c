"""Files in datastores: fetched by a node, uploaded through the API, written over SSH."""

from __future__ import annotations

import contextlib
import os
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.provider_bench import Bench, Failed, bench
from tests.support.web import served

from stackyard import lab
from stackyard.provider.sources import SourceTrust

DOWNLOAD, FILE = "proxmox_download_file", "proxmox_virtual_environment_file"
PLACE = {"node_name": "pve1", "datastore_id": "local"}


@contextlib.asynccontextmanager
async def run(*, ssh: bool = False) -> AsyncIterator[tuple[Bench, lab.Running]]:
    port = 0 if ssh else None
    async with lab.start(nodes=("pve1",), ssh_port=port) as running, bench(running) as it:
        yield (it, running)


def contents(running: lab.Running) -> dict[str, Any]:
    return {volume["volid"]: volume for volume in running.world.store.items("volumes").values()}


async def test_a_file_is_fetched_again_when_its_source_changes_and_only_then(tmp_path: Path) -> None:
    (tmp_path / "a.img").write_bytes(b"one")

    async def scenario(it: Bench, running: lab.Running) -> None:
        config = {**PLACE, "content_type": "iso", "url": f"{url}/a.img"}
        await it.apply(DOWNLOAD, **config)
        assert (it.states[DOWNLOAD]["id"], it.states[DOWNLOAD]["size"]) == ("local:iso/a.img", 3)
        assert await it.is_settled(DOWNLOAD, **config)
        (tmp_path / "a.img").write_bytes(b"another")
        assert not await it.is_settled(DOWNLOAD, **config)
        assert it.plan(DOWNLOAD, **config).problems[0].summary == "The file has changed at its source"
        await it.apply(DOWNLOAD, **config)
        assert it.states[DOWNLOAD]["size"] == 7
        assert list(contents(running)) == ["local:iso/a.img"]

    with served(tmp_path) as url:
        async with run() as (it, running):
            await scenario(it, running)


async def test_with_overwrite_off_a_changed_source_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "a.img").write_bytes(b"one")

    async def scenario(it: Bench, _running: lab.Running) -> None:
        config = {**PLACE, "content_type": "iso", "url": f"{url}/a.img", "overwrite": False}
        await it.apply(DOWNLOAD, **config)
        (tmp_path / "a.img").write_bytes(b"another")
        assert await it.is_settled(DOWNLOAD, **config)

    with served(tmp_path) as url:
        async with run() as (it, _running):
            await scenario(it, _running)


async def test_a_file_of_somebody_else_is_replaced_only_on_request(tmp_path: Path) -> None:
    (tmp_path / "a.img").write_bytes(b"one")

    async def scenario(it: Bench, _running: lab.Running) -> None:
        config = {**PLACE, "content_type": "iso", "url": f"{url}/a.img"}
        await it.apply(DOWNLOAD, **config)
        other = Bench(it.session)
        with pytest.raises(Failed, match="refusing to override existing file"):
            await other.apply(DOWNLOAD, **config)
        await other.apply(DOWNLOAD, **config, overwrite_unmanaged=True)
        assert other.states[DOWNLOAD]["size"] == 3

    with served(tmp_path) as url:
        async with run() as (it, _running):
            await scenario(it, _running)


async def test_a_checksum_that_does_not_fit_is_an_error_of_the_task(tmp_path: Path) -> None:
    (tmp_path / "a.img").write_bytes(b"one")

    async def scenario(it: Bench, running: lab.Running) -> None:
        sums = {"checksum": "0" * 64, "checksum_algorithm": "sha256"}
        with pytest.raises(Failed, match="checksum mismatch"):
            await it.apply(DOWNLOAD, **PLACE, content_type="iso", url=f"{url}/a.img", **sums)
        assert contents(running) == {}
        with pytest.raises(Failed, match="`checksum` needs `checksum_algorithm`"):
            it.plan(DOWNLOAD, **PLACE, content_type="iso", url=f"{url}/a.img", checksum="00")

    with served(tmp_path) as url:
        async with run() as (it, running):
            await scenario(it, running)


async def test_an_upload_goes_through_the_api_and_follows_its_source(tmp_path: Path) -> None:
    source = tmp_path / "tiny.iso"
    source.write_bytes(b"x" * 3_000_000)

    async with run() as (it, running):
        config = {**PLACE, "source_file": [{"path": str(source)}]}
        await it.apply(FILE, **config)
        assert it.states[FILE]["id"] == "local:iso/tiny.iso"
        assert contents(running)["local:iso/tiny.iso"]["size"] == 3_000_000
        assert await it.is_settled(FILE, **config)
        source.write_bytes(b"other")
        os.utime(source, (1, 1))
        await it.refresh(FILE)
        assert it.plan(FILE, **config).replace
        await it.apply(FILE, **config)
        assert contents(running)["local:iso/tiny.iso"]["size"] == 5


async def test_a_source_that_is_gone_does_not_matter_once_it_is_uploaded(tmp_path: Path) -> None:
    source = tmp_path / "tiny.iso"
    source.write_bytes(b"x")

    async with run() as (it, _running):
        config = {**PLACE, "source_file": [{"path": str(source)}]}
        await it.apply(FILE, **config)
        source.unlink()
        assert await it.is_settled(FILE, **config)


@pytest.mark.parametrize("mode", ["stream", "sftp"])
async def test_a_snippet_is_written_on_the_node(mode: str) -> None:
    async with run(ssh=True) as (it, running):
        raw = {"data": "#cloud-config\n", "file_name": "user.yaml", "resize": 20}
        config = {**PLACE, "source_raw": [raw], "upload_mode": mode, "file_mode": "0600"}
        await it.apply(FILE, **config)
        assert contents(running)["local:snippets/user.yaml"]["size"] == 20
        assert await it.is_settled(FILE, **config)
        changed = {**config, "source_raw": [{**raw, "data": "#cloud-config\nx: 1"}]}
        assert it.plan(FILE, **changed).replace
        await it.remove(FILE)
        assert contents(running) == {}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "Give one of `source_file` and `source_raw`"),
        ({"source_raw": [{"data": "", "file_name": "a"}]}, "does not tell `content_type`"),
        ({"source_raw": [{"data": "too long", "file_name": "a.yaml", "resize": 3}]}, "more than the 3"),
        ({"source_file": [{"path": "/nowhere/a.iso"}]}, "No such file"),
        ({"source_file": [{"path": "http://127.0.0.1:9/a.iso"}]}, "Cannot read http"),
    ],
)
async def test_a_source_that_cannot_be_used_is_refused(config: dict[str, Any], said: str) -> None:
    async with run() as (it, running):
        with pytest.raises(Failed, match=said):
            await it.apply(FILE, **PLACE, **config)
        assert contents(running) == {}


async def test_a_wrong_checksum_of_a_source_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.iso").write_bytes(b"one")

    async with run() as (it, running):
        with pytest.raises(Failed, match="The SHA-256 of"):
            await it.apply(FILE, **PLACE, source_file=[{"path": str(tmp_path / "a.iso"), "checksum": "00"}])
        assert contents(running) == {}


async def test_a_source_at_a_url_is_fetched_here_and_uploaded(tmp_path: Path) -> None:
    (tmp_path / "a.iso").write_bytes(b"from afar")

    async def scenario(it: Bench, running: lab.Running) -> None:
        config = {**PLACE, "source_file": [{"path": f"{url}/a.iso", "file_name": "b.iso"}]}
        await it.apply(FILE, **config)
        assert contents(running)["local:iso/b.iso"]["size"] == 9
        assert await it.is_settled(FILE, **config)

    with served(tmp_path) as url:
        async with run() as (it, running):
            await scenario(it, running)


def test_the_server_of_a_source_is_verified_as_the_configuration_says() -> None:
    assert SourceTrust().context() is True
    assert SourceTrust(insecure=True).context() is False
    newest = SourceTrust(min_tls="1.3").context()
    assert isinstance(newest, ssl.SSLContext)
    assert (newest.minimum_version, newest.verify_mode) == (ssl.TLSVersion.TLSv1_3, ssl.CERT_REQUIRED)
    blind = SourceTrust(insecure=True, min_tls="1.2").context()
    assert isinstance(blind, ssl.SSLContext)
    assert (blind.minimum_version, blind.verify_mode) == (ssl.TLSVersion.TLSv1_2, ssl.CERT_NONE)


async def test_a_file_is_imported_by_node_and_volume() -> None:
    async with run() as (it, _running):
        found = it.operations.identify(it.known(DOWNLOAD), DOWNLOAD, "pve1/local:iso/a.img").state
        assert found is not None
        assert (found["node_name"], found["id"], found["file_name"]) == ("pve1", "local:iso/a.img", "a.img")
        refused = it.operations.identify(it.known(FILE), FILE, "pve1/local")
        assert "NODE/DATASTORE:CONTENT/NAME" in refused.problems[0].detail
