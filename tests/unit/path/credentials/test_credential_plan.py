"""What is planned of tokens, their roles and passwords, for every way in which file and cluster differ."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.support.provider import lab_api

from stackyard import lab
from stackyard.clients import proxmox
from stackyard.clients.proxmox.access_calls import AccessEntry, TokenSettings
from stackyard.desired import ApiToken, Credentials, TokenGrant, UserPassword
from stackyard.engine.changes import Action
from stackyard.guard import Permit
from stackyard.path.credentials.cluster import CredentialsHiddenError, PresentCredentials, require_shown
from stackyard.path.credentials.findings import RENEW_TOKEN
from stackyard.path.credentials.kept_access import explain_kept, find_kept_access
from stackyard.path.credentials.plan import Situation, plan_credentials
from stackyard.path.credentials.record import (
    CredentialRecord,
    TokenRecord,
    fits_fingerprint,
    make_fingerprint,
)
from stackyard.path.planfile import PlanKey
from stackyard.state.inside import Instance

CI = "anna@pve!ci"
WANTED = ApiToken(id=CI, comment="CI", store="ci")
GRANT = AccessEntry(path="/vms", owner=CI, role="PVEAuditor")
# Everything is as the file says.
SETTLED = Situation(
    wanted=Credentials(
        tokens=(WANTED,),
        grants=(TokenGrant(token=CI, path="/vms", role="PVEAuditor"),),
        passwords=(UserPassword(user="anna@pve", name="passwords.anna"),),
    ),
    record=CredentialRecord(
        tokens={CI: TokenRecord(store="ci")}, passwords={"anna@pve": "00"}, grants=frozenset({GRANT})
    ),
    present=PresentCredentials(
        users={"anna@pve": True},
        tokens={CI: TokenSettings(id=CI, comment="CI")},
        entries=frozenset({GRANT}),
    ),
    kept={"ci": f"{CI}=secret"},
    users=frozenset({"anna@pve"}),
    caller="root@pam!lab",
)
MOVED = SETTLED.wanted.model_copy(update={"tokens": (WANTED.model_copy(update={"store": "new"}),)})
INCOMPLETE = CredentialRecord(tokens={CI: TokenRecord(store="ci", is_complete=False)})
ONLY_TOKEN = Credentials(tokens=(WANTED,))
NO_TOKEN = replace(SETTLED.present, tokens={}, entries=frozenset())
RENEWED = frozenset({Permit(option=RENEW_TOKEN, name=CI)})


def seen(situation: Situation) -> tuple[list[tuple[str, Action]], list[str]]:
    """Return the rows of a plan, and the codes of what is in the way."""
    made = plan_credentials(situation)
    rows = [(one.address.partition("[")[0], one.action) for one in made.changes]
    return rows, [one.kind.code for one in made.findings]


GOING = replace(SETTLED, wanted=Credentials())


@pytest.mark.parametrize(
    ("situation", "rows", "codes"),
    [
        pytest.param(SETTLED, [], [], id="settled"),
        pytest.param(GOING, [("token", Action.DELETE)], ["E-GUARD-DESTROYS-TOKEN"], id="all goes"),
        pytest.param(replace(GOING, staying=frozenset({CI})), [], [], id="all but the token in use goes"),
        pytest.param(
            replace(SETTLED, present=NO_TOKEN, record=CredentialRecord(), wanted=ONLY_TOKEN),
            [("token", Action.CREATE)],
            ["E-TOKEN-STORE-TAKEN"],
            id="a secret of the same token on another cluster",
        ),
        pytest.param(
            replace(SETTLED, present=NO_TOKEN),
            [("token", Action.CREATE), ("token_role", Action.CREATE)],
            [],
            id="removed by hand",
        ),
        pytest.param(
            replace(
                SETTLED,
                present=replace(
                    SETTLED.present, tokens={CI: TokenSettings(id=CI, separates=False, expires=2_000_000_000)}
                ),
            ),
            [("token", Action.UPDATE)],
            [],
            id="changed by hand",
        ),
        pytest.param(
            replace(SETTLED, kept={}),
            [("token", Action.REPLACE)],
            ["E-TOKEN-SECRET-UNKNOWN"],
            id="secret lost",
        ),
        pytest.param(
            replace(SETTLED, present=replace(SETTLED.present, unaccepted=frozenset({CI}))),
            [("token", Action.REPLACE)],
            ["E-TOKEN-SECRET-REFUSED"],
            id="secret refused",
        ),
        pytest.param(
            replace(SETTLED, wanted=ONLY_TOKEN, record=INCOMPLETE, kept={}),
            [("token", Action.REPLACE)],
            [],
            id="a killed run made it and stored no secret",
        ),
        pytest.param(
            replace(SETTLED, wanted=ONLY_TOKEN, record=INCOMPLETE),
            [("token", Action.NOTHING)],
            [],
            id="a killed run stored the secret",
        ),
        pytest.param(
            replace(SETTLED, wanted=ONLY_TOKEN, record=CredentialRecord()),
            [("token", Action.NOTHING)],
            [],
            id="adopted",
        ),
        pytest.param(
            replace(SETTLED, permits=RENEWED), [("token", Action.REPLACE)], [], id="renewed by name"
        ),
        pytest.param(
            replace(SETTLED, permits=RENEWED, caller=CI),
            [("token", Action.REPLACE)],
            ["E-TOKEN-IN-USE"],
            id="the token in use cannot renew itself",
        ),
        pytest.param(
            replace(SETTLED, kept={"ci": "other@pve!x=secret"}),
            [("token", Action.REPLACE)],
            ["E-TOKEN-STORE-TAKEN", "E-TOKEN-SECRET-UNKNOWN"],
            id="another token under its name",
        ),
        pytest.param(
            replace(SETTLED, wanted=MOVED),
            [("token", Action.UPDATE)],
            [],
            id="kept under another name",
        ),
        pytest.param(
            replace(SETTLED, wanted=Credentials()),
            [("token", Action.DELETE)],
            ["E-GUARD-DESTROYS-TOKEN"],
            id="taken out of the file",
        ),
        pytest.param(
            replace(SETTLED, wanted=Credentials(), caller=CI),
            [("token", Action.DELETE)],
            ["E-TOKEN-IN-USE"],
            id="the token in use is not removed",
        ),
        pytest.param(
            replace(SETTLED, wanted=Credentials(), node_tokens={"ci": ("pve2",)}),
            [("token", Action.DELETE)],
            ["E-TOKEN-USED-BY-NODES"],
            id="a token of a node is not removed",
        ),
        pytest.param(
            replace(SETTLED, wanted=Credentials(), record=CredentialRecord()),
            [],
            [],
            id="others' tokens stay",
        ),
        pytest.param(
            replace(SETTLED, wanted=ONLY_TOKEN),
            [("token_role", Action.DELETE)],
            [],
            id="role and password taken out of the file",
        ),
        pytest.param(
            replace(SETTLED, changed_passwords=frozenset({"anna@pve"})),
            [("password", Action.UPDATE)],
            ["W-PASSWORD-LOGIN"],
            id="another password",
        ),
        pytest.param(
            replace(SETTLED, changed_passwords=frozenset({"anna@pve"}), has_login=True),
            [("password", Action.UPDATE)],
            [],
            id="another password with a login",
        ),
        pytest.param(
            Situation(
                wanted=Credentials(
                    tokens=(WANTED,), grants=(TokenGrant(token="x@pve!y", path="/", role="PVEAdmin"),)
                )
            ),
            [("token", Action.CREATE), ("token_role", Action.CREATE)],
            ["E-TOKEN-USER-UNKNOWN", "E-TOKEN-GRANT-UNKNOWN"],
            id="unknown names",
        ),
    ],
)
def test_each_difference_is_one_row_and_what_is_in_the_way_is_named(
    situation: Situation, rows: list[tuple[str, Action]], codes: list[str]
) -> None:
    assert seen(situation) == (rows, codes)


def test_what_may_be_hidden_is_never_taken_for_gone() -> None:
    async def run() -> None:
        async with lab.start(nodes=("pve1",)) as running, lab_api(running) as root:
            await require_shown(root, {CI})
            await root.post("/access/users", {"userid": "weak@pve", "password": "weak-password"})
            weak = proxmox.Login(username="weak@pve", password="weak-password")
            async with proxmox.Client(replace(root.connection, credentials=weak)) as client:
                await require_shown(client, ())
                with pytest.raises(CredentialsHiddenError, match=f"{CI} are not listed"):
                    await require_shown(client, {CI})

    asyncio.run(run())


def test_no_secret_is_in_what_a_saved_plan_keeps() -> None:
    situation = replace(SETTLED, present=replace(SETTLED.present, unaccepted=frozenset({CI})))
    assert "secret" not in str(plan_credentials(situation).document()).replace("'secret'", "")
    assert "=secret" not in repr(situation)


def test_a_fingerprint_tells_another_password_and_survives_a_rotation_of_the_site_key() -> None:
    old, new = PlanKey(b"1" * 32), PlanKey(b"2" * 32)
    known = make_fingerprint("anna@pve", "sesame", old)
    assert fits_fingerprint(known, "anna@pve", "sesame", (new, old))
    assert not fits_fingerprint(known, "anna@pve", "other", (new, old))
    assert not fits_fingerprint(known, "bert@pve", "sesame", (new, old))
    assert known != make_fingerprint("anna@pve", "sesame", new)


async def test_what_the_tokens_of_a_site_need_is_kept_and_named() -> None:
    async with lab.start(nodes=("pve1",)) as running, lab_api(running) as client:
        await client.post("/access/groups", {"groupid": "ops"})
        await client.post("/access/groups", {"groupid": "family"})
        await client.post("/access/users", {"userid": "anna@pve", "groups": "ops"})
        await client.put("/access/acl", {"path": "/", "groups": "ops", "roles": "PVEAdmin"})
        await client.put("/access/acl", {"path": "/vms", "groups": "family", "roles": "PVEAuditor"})
        rows = {
            "user": {"user_id": "anna@pve"},
            "group": {"group_id": "ops"},
            "family": {"group_id": "family"},
            "admin": {"path": "/", "group_id": "ops", "role_id": "PVEAdmin"},
            "auditor": {"path": "/vms", "group_id": "family", "role_id": "PVEAuditor"},
            "role": {"role_id": "PVEAdmin"},
        }
        types = {"family": "group", "admin": "acl", "auditor": "acl"}
        instances = {
            name: Instance(
                address=name,
                mode="managed",
                type=f"proxmox_virtual_environment_{types.get(name, name)}",
                attributes=values,
            )
            for name, values in rows.items()
        }
        kept = await find_kept_access(client, frozenset({CI}), instances, frozenset({("role", "Gone")}))
    assert kept.addresses == {"user", "group", "admin", "role"}
    (said,) = explain_kept(kept, {CI})
    commands = "pveum user delete anna@pve\n  pveum group delete ops\n  pveum role delete PVEAdmin"
    assert commands in said.detail
    assert (("role", "Gone") in kept.objects, "1 ACL entry" in said.detail) == (False, True)
