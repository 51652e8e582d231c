"""What an inner host is given to work with: a key pair and an API token of its own, made there."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import parse_json
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
# Anyone who else listens on that port shows another certificate and is not sent the token.
_ASK = """\
import hashlib, http.client, json, ssl, sys
token, pin = sys.stdin.read().split("\\n")[:2]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
server = http.client.HTTPSConnection("127.0.0.1", 8006, timeout=60, context=context)
server.connect()
shown = hashlib.sha256(server.sock.getpeercert(True)).hexdigest()
if shown != pin.replace(":", "").lower():
    sys.exit("The API on port 8006 shows another certificate than the one of this node: SHA-256 " + shown)
headers = {"Authorization": "PVEAPIToken=" + token}
server.request("GET", "/api2/json/access/permissions?path=/", headers=headers)
answer = server.getresponse()
if answer.status not in (200, 401):
    sys.exit("The API answered with status %d" % answer.status)
print(json.dumps(json.load(answer)["data"].get("/", {})) if answer.status == 200 else "{}")
"""
# What a public key of ours looks like; its comment has the name of the host.
_PUBLIC_KEY = re.compile(r"ssh-ed25519 [A-Za-z0-9+/=]{16,400}( [ -~]{1,200})?")


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
    if not _PUBLIC_KEY.fullmatch(said.strip()):
        raise InnerHostError(f"{inner.name} answered with no public key of the type ssh-ed25519.")
    return said.strip()


async def make_token(inner: InnerHost, known: str | None, *, runtime: str, fingerprint: str) -> str:
    """Return a token for the API of the host with the privileges of `PRIVILEGES`: the known one if it does.

    Args:
        inner: The host.
        known: The token that the host had before.
        runtime: Where the archive is unpacked there.
        fingerprint: The SHA-256 of the certificate of its API, to which the token is shown.

    Raises:
        InnerHostError: It cannot be created.
    """
    roles = {
        str(role["roleid"]): _words(role.get("privs")) for role in await inner.ask("pveum", "role", "list")
    }
    wanted = set(PRIVILEGES) & set[str]().union(*roles.values())
    if known and wanted <= await _privileges(inner, known, runtime, fingerprint):
        return known
    await _make_role(inner, roles, wanted)
    users = {str(user["userid"]) for user in await inner.ask("pveum", "user", "list")}
    if USER not in users:
        await inner.run(f"pveum user add {USER} --comment 'Runs guests for an outer stackyard'")
    tokens = await inner.ask("pveum", "user", "token", "list", USER)
    if any(token["tokenid"] == TOKEN for token in tokens):
        await inner.run(f"pveum user token remove {USER} {TOKEN}")
    made = await inner.ask("pveum", "user", "token", "add", USER, TOKEN, "--privsep", "1", is_secret=True)
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


async def _privileges(inner: InnerHost, token: str, runtime: str, fingerprint: str) -> set[str]:
    given = f"{token}\n{fingerprint}\n".encode()
    said = await inner.run(f"{runtime}/bin/python -I -c {shlex.quote(_ASK)}", stdin=given)
    try:
        return set(parse_json(said))
    except (ValueError, TypeError) as err:
        raise InnerHostError(f"{inner.name}: its API answered with no rights: {said[:200]!r}") from err


def _words(text: object) -> set[str]:
    return {word for word in str(text or "").split(",") if word}
