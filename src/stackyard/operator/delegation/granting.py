"""What an inner host is given to work with: a key pair and an API token of its own, made there."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from stackyard.documents.jsontext import parse_json
from stackyard.operator.delegation.inner_host import BASE, InnerHostError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.operator.delegation.inner_host import InnerHost

__all__ = ["KEY_FILE", "PRIVILEGES", "TOKEN", "USER", "make_key", "make_token"]

KEY_FILE = f"{BASE}/key"
USER, TOKEN, ROLE = "stackyard@pve", "operator", "StackyardOperator"

# What creating, changing and removing guests needs, and nothing of users, permissions, other nodes or shells.
# A version of Proxmox that does not know one of them is not asked for it.
PRIVILEGES = (
    "Datastore.Allocate Datastore.AllocateSpace Datastore.AllocateTemplate Datastore.Audit "
    "Mapping.Audit Mapping.Use Pool.Allocate Pool.Audit SDN.Allocate SDN.Audit SDN.Use "
    "Sys.AccessNetwork Sys.Audit Sys.Modify "
    "VM.Allocate VM.Audit VM.Clone VM.Config.CDROM VM.Config.CPU VM.Config.Cloudinit VM.Config.Disk "
    "VM.Config.HWType VM.Config.Memory VM.Config.Network VM.Config.Options VM.GuestAgent.Audit "
    "VM.GuestAgent.Unrestricted VM.Migrate VM.Monitor VM.PowerMgmt"
).split()

# Runs on the host with the Python of the archive: what a token may do there, or nothing if it is not valid.
_ASK = """\
import json, ssl, sys, urllib.error, urllib.request
request = urllib.request.Request("https://127.0.0.1:8006/api2/json/access/permissions?path=/")
request.add_header("Authorization", "PVEAPIToken=" + sys.stdin.read().strip())
opened = urllib.request.build_opener(
    urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=ssl._create_unverified_context())
)
try:
    print(json.dumps(json.load(opened.open(request, timeout=60))["data"].get("/", {})))
except urllib.error.HTTPError as err:
    print("{}" if err.code == 401 else sys.exit(str(err)))
"""


async def make_key(inner: InnerHost) -> str:
    """Have the host make a key pair unless it has one, let it log in to itself, and return the public half.

    The provider copies snippets over SSH, to the very host that it runs on.

    Raises:
        InnerHostError: It cannot.
    """
    comment = shlex.quote(f"stackyard@{inner.name}")
    said = await inner.run(
        f"umask 077; mkdir -p {BASE} /root/.ssh; "
        f"[ -s {KEY_FILE}.pub ] || {{ rm -f {KEY_FILE}; "
        f"ssh-keygen -q -t ed25519 -N '' -C {comment} -f {KEY_FILE} </dev/null; }}; "
        "touch /root/.ssh/authorized_keys; "
        f'grep -qxF "$(cat {KEY_FILE}.pub)" /root/.ssh/authorized_keys || '
        f"cat {KEY_FILE}.pub >> /root/.ssh/authorized_keys; cat {KEY_FILE}.pub"
    )
    return said.strip()


async def make_token(inner: InnerHost, known: str | None, *, runtime: str) -> str:
    """Return a token for the API of the host with the privileges of `PRIVILEGES`: the known one if it does.

    Args:
        inner: The host.
        known: The token that the host had before.
        runtime: Where the archive is unpacked there.

    Raises:
        InnerHostError: It cannot be made.
    """
    roles = {
        str(role["roleid"]): _words(role.get("privs")) for role in await inner.ask("pveum", "role", "list")
    }
    wanted = set(PRIVILEGES) & set[str]().union(*roles.values())
    if known and wanted <= await _privileges(inner, known, runtime):
        return known
    await _make_role(inner, roles, wanted)
    users = {str(user["userid"]) for user in await inner.ask("pveum", "user", "list")}
    if USER not in users:
        await inner.run(f"pveum user add {USER} --comment 'Runs guests for an outer stackyard'")
    tokens = await inner.ask("pveum", "user", "token", "list", USER)
    if any(token["tokenid"] == TOKEN for token in tokens):
        await inner.run(f"pveum user token remove {USER} {TOKEN}")
    made = await inner.ask("pveum", "user", "token", "add", USER, TOKEN, "--privsep", "1")
    name = f"{USER}!{TOKEN}"
    # A token with privileges of its own has those that both it and its user have.
    await inner.run(
        f"pveum acl modify / --users {USER} --roles {ROLE}; "
        f"pveum acl modify / --tokens '{name}' --roles {ROLE}"
    )
    return f"{name}={_value(inner, made)}"


def _value(inner: InnerHost, made: Mapping[str, Any]) -> str:
    value = made.get("value")
    if not isinstance(value, str):
        raise InnerHostError(f"{inner.name}: the new token has no value.")
    return value


async def _make_role(inner: InnerHost, roles: Mapping[str, set[str]], wanted: set[str]) -> None:
    if roles.get(ROLE) == wanted:
        return
    verb = "modify" if ROLE in roles else "add"
    await inner.run(f"pveum role {verb} {ROLE} --privs {shlex.quote(','.join(sorted(wanted)))}")


async def _privileges(inner: InnerHost, token: str, runtime: str) -> set[str]:
    said = await inner.run(f"{runtime}/bin/python -I -c {shlex.quote(_ASK)}", stdin=token.encode())
    try:
        return set(parse_json(said))
    except (ValueError, TypeError) as err:
        raise InnerHostError(f"{inner.name}: its API answered with no rights: {said[:200]!r}") from err


def _words(text: object) -> set[str]:
    return {word for word in str(text or "").split(",") if word}
