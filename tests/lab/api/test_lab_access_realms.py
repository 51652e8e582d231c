"""Realms: their settings, what stays secret of them, and synchronising them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused, lab_client

REALMS = "/access/domains"
LDAP = {"type": "ldap", "server1": "ldap.example.com", "base_dn": "dc=example,dc=com", "user_attr": "uid"}
OPENID = {"type": "openid", "issuer-url": "https://id.example.com", "client-id": "pve"}


@contextlib.asynccontextmanager
async def with_lab(**options: Any) -> AsyncIterator[LabClient]:
    async with lab_client(**options) as api:
        yield api


async def refusal(call: Awaitable[Any]) -> Refused:
    with pytest.raises(Refused) as caught:
        await call
    return caught.value


async def realm(api: LabClient, name: str) -> dict[str, Any]:
    found: dict[str, Any] = await api.get(f"{REALMS}/{name}")
    assert len(found.pop("digest")) == 40
    return found


async def test_the_list_of_realms_is_open_to_the_login_page() -> None:
    async with with_lab() as api:
        await api.post(REALMS, realm="corp", default=1, **LDAP)
        await api.post(REALMS, realm="id", comment="single sign-on", **OPENID)
        assert await api.with_headers({}).get(REALMS) == [
            {"realm": "pam", "type": "pam", "comment": "Linux PAM standard authentication"},
            {"realm": "pve", "type": "pve", "comment": "Proxmox VE authentication server"},
            {"realm": "corp", "type": "ldap", "default": 1},
            {"realm": "id", "type": "openid", "comment": "single sign-on"},
        ]


async def test_a_directory_realm_keeps_its_bind_password_to_itself() -> None:
    async with with_lab() as api:
        await api.post(
            REALMS, realm="corp", bind_dn="cn=x", password="bind-secret", port=636, verify=1, **LDAP
        )
        assert await realm(api, "corp") == {**LDAP, "bind_dn": "cn=x", "port": 636, "verify": 1}
        assert api.world.store.get("realm_secrets", "corp") == {"password": "bind-secret"}
        await api.put(f"{REALMS}/corp", delete="password")
        assert api.world.store.get("realm_secrets", "corp") is None


async def test_options_are_set_and_unset_and_an_empty_text_is_unset() -> None:
    async with with_lab() as api:
        await api.post(REALMS, realm="id", scopes="email", comment="x", **OPENID)
        await api.put(f"{REALMS}/id", scopes="", autocreate=1, delete="comment")
        assert await realm(api, "id") == {**OPENID, "autocreate": 1}


async def test_there_is_one_default_realm() -> None:
    async with with_lab() as api:
        await api.put(f"{REALMS}/pve", default=1)
        await api.post(REALMS, realm="corp", default=1, **LDAP)
        assert [row["realm"] for row in await api.get(REALMS) if row.get("default")] == ["corp"]


async def test_old_words_for_what_a_sync_removes_are_kept_as_the_new_ones() -> None:
    async with with_lab() as api:
        options = {"sync-defaults-options": "scope=users,full=1,purge=1"}
        await api.post(REALMS, realm="corp", **options, **LDAP)
        kept = (await realm(api, "corp"))["sync-defaults-options"]
        assert kept == "remove-vanished=entry;properties;acl,scope=users"


async def test_a_change_of_another_state_than_the_one_seen_is_refused() -> None:
    async with with_lab() as api:
        await api.post(REALMS, realm="corp", **LDAP)
        digest = (await api.get(f"{REALMS}/corp"))["digest"]
        await api.put(f"{REALMS}/corp", comment="first", digest=digest)
        late = await refusal(api.put(f"{REALMS}/corp", comment="second", digest=digest))
        assert late.reason == (
            "update auth server failed: "
            "detected modified configuration - file changed by other user? Try again."
        )


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"realm": "pve", **LDAP}, "domain 'pve' already exists"),
        ({"realm": "mine", "type": "pam"}, "unable to create builtin type 'pam'"),
        ({"realm": "corp", "type": "ldap"}, "missing value for required option 'base_dn'"),
        ({"realm": "corp", **LDAP, "client-id": "x"}, "unexpected property 'client-id'"),
        ({"realm": "id", **OPENID, "check-connection": "1"}, "'check-connection' parameter can only be set"),
        ({"realm": "corp", **LDAP, "check-connection": "1"}, "Bad hostname 'ldap.example.com'"),
    ],
)
async def test_realms_that_cannot_be_are_refused(params: dict[str, str], text: str) -> None:
    async with with_lab() as api:
        refused = await refusal(api.post(REALMS, **params))
        assert refused.status == 500
        assert refused.reason.startswith("add auth server failed: ")
        assert text in refused.reason
        assert len(await api.get(REALMS)) == 2


async def test_a_realm_goes_without_its_users_and_a_built_in_one_comes_back() -> None:
    async with with_lab() as api:
        await api.post(REALMS, realm="corp", **LDAP)
        await api.post("/access/users", userid="bob@corp")
        await api.delete(f"{REALMS}/corp")
        assert (await api.get("/access/users/bob@corp"))["enable"] == 1
        gone = await refusal(api.get(f"{REALMS}/corp"))
        assert gone.reason == "domain 'corp' does not exist"
        again = await refusal(api.delete(f"{REALMS}/corp"))
        assert again.reason == "delete auth server failed: authentication domain 'corp' does not exist"
        required = await refusal(api.put(f"{REALMS}/pve", delete="nothing", server1="x"))
        assert required.reason == "update auth server failed: unexpected property 'server1'"
        await api.put(f"{REALMS}/pve", comment="ours")
        await api.delete(f"{REALMS}/pve")
        assert await realm(api, "pve") == {"type": "pve", "comment": "Proxmox VE authentication server"}


async def test_a_sync_is_a_task_that_fails_for_want_of_a_server() -> None:
    async with with_lab() as api:
        await api.post(REALMS, realm="corp", **LDAP)
        scope = await refusal(api.post(f"{REALMS}/corp/sync"))
        assert "defined in realm default sync options" in scope.errors["scope"]
        upid = await api.post(f"{REALMS}/corp/sync", scope="both")
        assert upid.split(":")[5:7] == ["auth-realm-sync", "corp"]
        assert "ldap.example.com" in await api.done(upid)
        assert (await api.log(upid))[0] == "starting sync for realm corp"
        dry = await api.post(f"{REALMS}/corp/sync", scope="users", dry__run=1)
        assert dry.split(":")[5] == "auth-realm-sync-test"
        wrong = await refusal(api.post(f"{REALMS}/pve/sync", scope="users"))
        assert wrong.reason == "Cannot sync realm type 'pve'! Only LDAP/AD realms can be synced."
        missing = await refusal(api.post(f"{REALMS}/nope/sync", scope="users"))
        assert missing.errors == {"realm": "Realm does not exist."}


async def test_users_of_realms_without_passwords_here_get_none() -> None:
    async with with_lab() as api:
        await api.post(REALMS, realm="corp", case__sensitive=0, **LDAP)
        refused = await refusal(api.post("/access/users", userid="bob@corp", password="secret123"))
        assert refused.reason == "create user failed: can't set password on auth type 'ldap'"
        await api.post("/access/users", userid="Bob@corp")
        same = await refusal(api.post("/access/users", userid="bob@corp"))
        assert same.reason == "create user failed: user 'Bob@corp' already exists"
