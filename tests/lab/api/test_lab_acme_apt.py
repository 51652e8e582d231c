"""ACME accounts and plugins, and the package repositories of a node."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused, lab_client

from stackyard.base.redaction import MASK
from stackyard.base.serving import make_certificate

ACME = "/cluster/acme"
REPOSITORIES = "/nodes/pve1/apt/repositories"


@contextlib.asynccontextmanager
async def with_lab(**options: Any) -> AsyncIterator[LabClient]:
    async with lab_client(**options) as api:
        yield api


async def test_an_account_is_registered_changed_and_given_up_in_tasks() -> None:
    async with with_lab() as api:
        root = await api.with_password(api.running.username, api.running.password)
        (directory, *_) = [row["url"] for row in await root.get(f"{ACME}/directories")]
        terms = await root.get(f"{ACME}/tos", directory=directory)
        account = {"name": "acc", "contact": "a@example.test", "directory": directory}
        refused = await root.done(await root.post(f"{ACME}/account", **account))
        assert refused == "Registration failed: Error: must agree to terms of service"
        upid = await root.post(f"{ACME}/account", tos_url=terms, **account)
        assert upid.split(":")[5:7] == ["acmeregister", ""]
        assert await root.done(upid) == "OK"
        found = await root.get(f"{ACME}/account/acc")
        assert found["account"]["contact"] == ["mailto:a@example.test"]
        assert (found["account"]["status"], found["directory"], found["tos"]) == ("valid", directory, terms)
        assert found["location"].startswith("https://")
        with pytest.raises(Refused, match=r"400 .*ACME account config file 'acc' already exists"):
            await root.post(f"{ACME}/account", tos_url=terms, **account)
        assert await root.done(await root.put(f"{ACME}/account/acc", contact="b@example.test")) == "OK"
        assert (await root.get(f"{ACME}/account/acc"))["account"]["contact"] == ["mailto:b@example.test"]
        assert await root.done(await root.delete(f"{ACME}/account/acc")) == "OK"
        assert await root.get(f"{ACME}/account") == [{"name": "_deactivated_acc_0"}]
        with pytest.raises(Refused, match=r"400 .*ACME account config file 'acc' does not exist"):
            await root.get(f"{ACME}/account/acc")


async def test_accounts_are_for_root_with_a_ticket_alone() -> None:
    async with with_lab() as api:
        with pytest.raises(Refused, match=r"403 Permission check failed \(user != root@pam\)"):
            await api.post(f"{ACME}/account", contact="a@example.test")


async def test_the_data_of_a_plugin_is_sent_encoded_and_shown_as_text() -> None:
    async with with_lab() as api:
        data = "CF_Token=x\nCF_Zone=y\n"
        encoded = base64.b64encode(data.encode()).decode()
        given = {"id": "cloud", "type": "dns", "api": "cf", "data": encoded, "validation-delay": 10}
        await api.post(f"{ACME}/plugins", **given)
        plugin = await api.get(f"{ACME}/plugins/cloud")
        assert (plugin["plugin"], plugin["data"], plugin["validation-delay"]) == ("cloud", data, 10)
        # What is not of the alphabet is passed over.
        await api.put(f"{ACME}/plugins/cloud", data=f"{encoded[:4]}ü{encoded[4:]}")
        assert (await api.get(f"{ACME}/plugins/cloud"))["data"] == data
        await api.put(f"{ACME}/plugins/cloud", delete="validation-delay,data", digest=plugin["digest"])
        assert not {"validation-delay", "data"} & set(await api.get(f"{ACME}/plugins/cloud"))
        names = {row["plugin"] for row in await api.get(f"{ACME}/plugins")}
        assert names == {"standalone", "cloud"}
        with pytest.raises(Refused, match="500 ACME plugin ID 'cloud' already exists"):
            await api.post(f"{ACME}/plugins", **given)
        await api.delete(f"{ACME}/plugins/cloud")
        with pytest.raises(Refused, match="500 ACME plugin 'cloud' not defined"):
            await api.get(f"{ACME}/plugins/cloud")


async def test_the_data_of_a_plugin_is_masked_in_the_journal() -> None:
    async with with_lab() as api:
        await api.post(f"{ACME}/plugins", id="cloud", type="dns", api="cf", data="c2VjcmV0PXg=")
        await api.put(f"{ACME}/plugins/cloud", data="c2VjcmV0PXg=")
        calls = [entry for entry in api.world.journal.entries() if entry.path.startswith(f"{ACME}/plugins")]
        assert [entry.parameters["data"] for entry in calls] == [MASK, MASK]


async def test_a_certificate_is_shown_without_its_chain_and_with_its_key() -> None:
    path, (leaf, other) = "/nodes/pve1/certificates", (make_certificate([name]) for name in ("::1", "b.org"))
    chain = leaf.certificate_pem.decode() + other.certificate_pem.decode()
    async with with_lab() as api:
        await api.post(f"{path}/custom", certificates=chain, key=leaf.key_pem.decode())
        *_, shown = await api.get(f"{path}/info")
        assert (shown["filename"], shown["pem"]) == ("pveproxy-ssl.pem", leaf.certificate_pem.decode())
        assert shown["san"] == ["0000:0000:0000:0000:0000:0000:0000:0001"]
        assert (shown["public-key-type"], shown["public-key-bits"]) == ("id-ecPublicKey", 256)


async def test_a_certificate_is_ordered_renewed_and_revoked_in_tasks() -> None:
    path = "/nodes/pve1/certificates/acme/certificate"
    async with with_lab() as api:
        root = await api.with_password(api.running.username, api.running.password)
        with pytest.raises(Refused, match="400 ACME domain list in node configuration is missing!"):
            await root.post(path)
        await root.put("/nodes/pve1/config", acme="domains=one.example.com")
        assert await root.done(await root.post(path)) == "ACME account config file 'default' does not exist."
        with pytest.raises(Refused, match=r"500 can't open '/etc/pve/nodes/pve1/pveproxy-ssl\.pem'"):
            await root.delete(path)
        account = {"contact": "a@example.test", "directory": "https://ca.example.com/directory"}
        await root.done(await root.post(f"{ACME}/account", **account))
        assert await root.done(await root.post(path)) == "OK"
        with pytest.raises(Refused, match=r"400 .*Custom certificate exists but 'force' is not set"):
            await root.post(path)
        upid = await root.put(path, force=1)
        assert await root.done(upid) == "OK"
        log = [line["t"] for line in await root.get(f"/nodes/pve1/tasks/{upid}/log")]
        assert log[-2:] == ["Revoking old certificate", "TASK OK"]
        assert await root.done(await root.delete(path)) == "OK"
        assert len(await root.get("/nodes/pve1/certificates/info")) == 2


async def test_repositories_are_enabled_and_disabled_by_file_and_index() -> None:
    async with with_lab() as api:
        found = await api.get(REPOSITORIES)
        path = "/etc/apt/sources.list.d/debian.sources"
        (file,) = [file for file in found["files"] if file["path"] == path]
        assert file["repositories"][0]["Components"][:2] == ["main", "contrib"]
        await api.post(REPOSITORIES, path=path, index=1, enabled=0, digest=found["digest"])
        changed = await api.get(REPOSITORIES)
        (file,) = [file for file in changed["files"] if file["path"] == path]
        assert [repository["Enabled"] for repository in file["repositories"]] == [1, 0]
        for params, text in (
            ({"path": path, "index": 1, "digest": found["digest"]}, "detected modified configuration"),
            ({"path": path, "index": 9}, "invalid index - 9"),
            ({"path": "/etc/passwd", "index": 0}, "invalid path - /etc/passwd"),
        ):
            with pytest.raises(Refused, match=f"500 {text}"):
                await api.post(REPOSITORIES, **params)


async def test_a_standard_repository_is_added_once_and_then_enabled() -> None:
    async with with_lab() as api:

        async def status() -> dict[str, Any]:
            standard = (await api.get(REPOSITORIES))["standard-repos"]
            return {row["handle"]: row.get("status") for row in standard}

        before = await status()
        assert (before["enterprise"], before["no-subscription"]) == (1, None)
        for _ in range(2):
            await api.put(REPOSITORIES, handle="no-subscription")
        files = {file["path"]: file for file in (await api.get(REPOSITORIES))["files"]}
        path = "/etc/apt/sources.list.d/proxmox.sources"
        assert len(files[path]["repositories"]) == 1
        await api.post(REPOSITORIES, path=path, index=0, enabled=0)
        assert (await status())["no-subscription"] == 0
        await api.put(REPOSITORIES, handle="no-subscription")
        assert (await status())["no-subscription"] == 1
        with pytest.raises(Refused, match="500 no standard repository for handle 'nope'"):
            await api.put(REPOSITORIES, handle="nope")
