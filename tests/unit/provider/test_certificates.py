"""Certificates and ACME: chains, lost answers, secrets, and what is ordered again."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.provider_bench import Bench, Failed, bench

from pvelab.faults.latency import Work
from stackyard import lab
from stackyard.base import serving
from stackyard.clients import proxmox
from stackyard.provider.resources.certificates.custom import fingerprint_of
from stackyard.provider.resources.certificates.domains import domain_settings, read_account, read_domains

ACCOUNT = "proxmox_acme_account"
PLUGIN = "proxmox_acme_dns_plugin"
ORDERED = "proxmox_acme_certificate"
GIVEN = "proxmox_virtual_environment_certificate"
CA = "https://ca.example.com/directory"
ONE, TWO = (serving.make_certificate([f"{name}.example.com"]) for name in ("one", "two"))
UPLOAD = {
    "node_name": "pve1",
    "certificate": ONE.certificate_pem.decode(),
    "private_key": ONE.key_pem.decode(),
}
ORDER = {"node_name": "pve1", "account": "default", "domains": [{"domain": "one.example.com"}]}


@contextlib.asynccontextmanager
async def run(journal: Path | None = None, **options: Any) -> AsyncIterator[tuple[lab.Running, Bench]]:
    """Give a lab and a provider that logs in as root: accounts of ACME are not for tokens."""
    async with lab.start(**{"nodes": ("pve1", "pve2"), **options}) as running:
        root = proxmox.Login(username=running.username, password=running.password)
        async with bench(running, journal, credentials=root) as it:
            yield running, it


def written(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_the_chain_of_a_certificate_is_uploaded_and_stays_although_proxmox_does_not_show_it() -> None:
    chained = {**UPLOAD, "certificate_chain": TWO.certificate_pem.decode()}
    async with run() as (running, it):
        made = await it.apply(GIVEN, **chained)
        assert running.world.store.items("certificates")["pve1"]["pem"].count("BEGIN CERTIFICATE") == 2
        assert made["ssl_fingerprint"] == fingerprint_of(chained["certificate"])
        assert (made["public_key_type"], made["public_key_size"]) == ("id-ecPublicKey", 256)
        assert await it.is_settled(GIVEN, **chained)
        whole = UPLOAD["certificate"] + TWO.certificate_pem.decode()
        await it.apply(GIVEN, **{**UPLOAD, "certificate": whole})
        assert await it.is_settled(GIVEN, **{**UPLOAD, "certificate": f"\n{whole}\n\n"})


async def test_a_certificate_of_somebody_else_is_replaced_only_when_that_is_said() -> None:
    async with run() as (_, it):
        other = {"certificates": TWO.certificate_pem.decode(), "key": TWO.key_pem.decode()}
        await it.session.client.post("/nodes/pve1/certificates/custom", other)
        with pytest.raises(Failed, match=r"pve1 has a custom certificate already(.|\n)*overwrite = true"):
            await it.apply(GIVEN, **UPLOAD)
        with pytest.raises(Failed, match=r"pve1 has a custom certificate already(.|\n)*force = true"):
            await it.apply(ORDERED, **ORDER)
        assert (await it.apply(GIVEN, **UPLOAD, overwrite=True))["file_name"] == "pveproxy-ssl.pem"


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_an_account_is_registered_once_although_answers_are_lost(moment: str) -> None:
    async with run() as (running, it):
        running.add_fault("drop", when=moment, method="POST", path="/cluster/acme/account", times=1)
        await it.apply(ACCOUNT, contact="a@example.com", directory=CA)
        tasks = [task for task in running.world.tasks.newest_first() if task["type"] == "acmeregister"]
        assert len(tasks) == 1
        assert list(running.world.store.items("acme_accounts")) == ["default"]


async def test_a_certificate_is_ordered_once_although_the_answer_is_lost() -> None:
    path = "/nodes/pve1/certificates/acme/certificate"
    async with run(latency_s={Work.CREATE: 0.3}) as (running, it):
        await it.apply(ACCOUNT, contact="a@example.com", directory=CA)
        running.add_fault("drop", when="after", method="POST", path=path, times=1)
        made = await it.apply(ORDERED, **ORDER)
        assert made["subject_alternative_names"] == ["one.example.com"]
        tasks = [task for task in running.world.tasks.newest_first() if task["type"] == "acmenewcert"]
        assert len(tasks) == 1


async def test_a_killed_run_is_awaited_before_an_account_is_registered(tmp_path: Path) -> None:
    async with run(tmp_path, latency_s={Work.CREATE: 0.5}) as (running, it):
        first = asyncio.create_task(it.apply(ACCOUNT, contact="a@example.com", directory=CA))
        while not any(task["type"] == "acmeregister" for task in running.world.tasks.newest_first()):
            await asyncio.sleep(0.01)
        first.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await first
        root = proxmox.Login(username=running.username, password=running.password)
        async with bench(running, tmp_path, credentials=root) as again:
            await again.apply(ACCOUNT, contact="a@example.com", directory=CA)
            assert await again.is_settled(ACCOUNT, contact="a@example.com", directory=CA)
        assert len([one for one in running.world.tasks.newest_first() if one["type"] == "acmeregister"]) == 1


async def test_other_domains_are_ordered_again_without_a_word_of_force() -> None:
    other = {**ORDER, "domains": [{"domain": "two.example.com"}, {"domain": "x.org", "plugin": "standalone"}]}
    async with run() as (_, it):
        await it.apply(ACCOUNT, contact="a@example.com", directory=CA)
        await it.apply(ORDERED, **ORDER)
        changed = await it.apply(ORDERED, **other)
        assert changed["subject_alternative_names"] == ["two.example.com", "x.org"]
        assert await it.is_settled(ORDERED, **other)
        await it.adopt(ORDERED, "pve1")
        assert await it.is_settled(ORDERED, **other)
        await it.remove(ORDERED)
        assert await it.session.client.get("/nodes/pve1/config") == {}


async def test_an_order_that_fails_is_an_error_and_can_be_repeated() -> None:
    async with run() as (_, it):
        with pytest.raises(Failed, match="ACME account config file 'default' does not exist"):
            await it.apply(ORDERED, **ORDER)
        await it.apply(ACCOUNT, contact="a@example.com", directory=CA)
        assert (await it.apply(ORDERED, **ORDER))["id"] == "pve1"


async def test_an_account_without_a_directory_has_the_one_of_proxmox_and_needs_no_other() -> None:
    terms = "https://letsencrypt.org/documents/LE-SA-v1.5-February-24-2025.pdf"
    plain = {"contact": "a@example.com, b@example.com", "tos": terms}
    async with run() as (_, it):
        made = await it.apply(ACCOUNT, **plain)
        assert (made["name"], made["directory"]) == ("default", None)
        assert await it.is_settled(ACCOUNT, **plain)
        with pytest.raises(Failed, match=f"`directory` of the ACME account default is .*not {CA}"):
            await it.apply(ACCOUNT, **plain, directory=CA)
        await it.adopt(ACCOUNT, "default")
        assert "acme-v02" in it.states[ACCOUNT]["directory"]
        assert it.plan(ACCOUNT, **plain).replace == []
        assert it.plan(ACCOUNT, **plain, directory=CA).replace == [("directory",)]


async def test_an_authority_that_tells_no_contacts_changes_none() -> None:
    async with run() as (running, it):
        await it.apply(ACCOUNT, contact="a@example.com", directory=CA)
        with running.world.store.transaction(), running.world.store.edit("acme_accounts", "default") as found:
            found["account"] = {"status": "valid"}
        assert await it.is_settled(ACCOUNT, contact="a@example.com", directory=CA)


async def test_no_key_gets_into_the_journal_of_the_provider_or_the_lab(tmp_path: Path) -> None:
    bound = {"contact": "a@example.com", "directory": CA, "eab_kid": "k", "eab_hmac_key": "canary-hmac"}
    async with run(tmp_path) as (running, it):
        running.add_fault("drop", when="after", method="POST")
        for name, config in (
            (ACCOUNT, bound),
            (PLUGIN, {"plugin": "dns", "api": "cf", "data": {"CF_Token": "canary-token"}}),
            (GIVEN, UPLOAD),
        ):
            with contextlib.suppress(Failed):
                await it.apply(name, **config)
        text = written(tmp_path)
        assert b"PRIVATE KEY" not in text
        assert b"canary" not in text
        assert CA.encode() in text
        calls = json.dumps([entry.parameters for entry in running.world.journal.entries()])
        assert "PRIVATE KEY" not in calls
        assert "canary" not in calls
        assert "Y2FuYXJ5" not in calls


async def test_data_that_is_written_only_is_in_no_state_and_goes_with_its_version() -> None:
    secret = {"plugin": "dns", "api": "cf", "data_wo": {"CF_Token": "canary"}, "data_wo_version": 1}
    async with run() as (running, it):
        state = await it.apply(PLUGIN, **secret)
        assert "canary" not in str(state)
        assert await it.refresh(PLUGIN) == state
        assert running.world.store.items("acme_plugins")["dns"]["data"] == "CF_Token=canary"
        turned = {**secret, "data_wo": {"CF_Token": "other"}, "data_wo_version": 2}
        await it.apply(PLUGIN, **turned)
        assert running.world.store.items("acme_plugins")["dns"]["data"] == "CF_Token=other"
        await it.apply(PLUGIN, plugin="dns", api="cf")
        assert "data" not in running.world.store.items("acme_plugins")["dns"]


async def test_a_digest_that_is_given_keeps_changes_of_others() -> None:
    async with run() as (_, it):
        state = await it.apply(PLUGIN, plugin="dns", api="cf", validation_delay=0)
        assert (state["validation_delay"], state["disable"]) == (0, None)
        client = it.session.client
        await client.put("/cluster/acme/plugins/dns", {"api": "aws"})
        with pytest.raises(Failed, match="detected modified configuration"):
            await it.apply(PLUGIN, plugin="dns", api="pdns", digest=state["digest"])
        now = (await client.get("/cluster/acme/plugins/dns"))["digest"]
        assert (await it.apply(PLUGIN, plugin="dns", api="pdns", digest=now))["digest"] == now


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (ACCOUNT, {"contact": "a@example.com", "eab_kid": "kid"}, "`eab_kid` needs `eab_hmac_key`"),
    (ACCOUNT, {"contact": "a@example.com", "directory": "ftp://x"}, "must be a URL"),
    (ACCOUNT, {"contact": " "}, "must have an e-mail address"),
    (PLUGIN, {"plugin": "p", "api": "cf", "data": {}}, "must not be empty"),
    (PLUGIN, {"plugin": "p", "api": "cf", "data": {"A": "x\ny"}}, "values of one line each"),
    (PLUGIN, {"plugin": "p", "api": "cf", "data": {"A=B": "x"}}, "names without line breaks"),
    (PLUGIN, {"plugin": "p", "api": "cf", "data": {"A": "x"}, "data_wo": {"A": "x"}}, "exclude each other"),
    (PLUGIN, {"plugin": "p", "api": "cf", "data_wo_version": 1}, "needs `data_wo`"),
    (PLUGIN, {"plugin": "p", "api": "cf", "validation_delay": 172801}, "must be 0 to 172800"),
    (ORDERED, {**ORDER, "domains": []}, "must name a domain"),
    (
        ORDERED,
        {**ORDER, "domains": [{"domain": f"{n}.example.com", "plugin": "p"} for n in range(7)]},
        "at most 6 domains with a plugin",
    ),
]


async def test_what_cannot_be_is_refused_by_name() -> None:
    async with run() as (_, it):
        for name, config, words in REFUSED:
            with pytest.raises(Failed, match=words):
                it.plan(name, **config)


def test_domains_keep_the_order_of_the_configuration() -> None:
    written: list[dict[str, Any]] = [
        {"domain": "b.org", "plugin": "p", "alias": "x.org"},
        {"domain": "a.org", "plugin": None, "alias": "lost"},
    ]
    settings = domain_settings("acc", written)
    assert settings == {
        "acme": "account=acc,domains=a.org",
        "acmedomain0": "b.org,alias=x.org,plugin=p",
        "delete": "acmedomain1,acmedomain2,acmedomain3,acmedomain4,acmedomain5",
    }
    assert read_domains(written, settings) == written
    plain = [{"domain": "a.org", "plugin": None, "alias": None}]
    assert read_domains(None, settings) == [*plain, written[0]]
    assert read_account(settings) == "acc"
    assert read_account({}) is None
    assert read_account({"acmedomain0": "domain=b.org"}) == "default"
