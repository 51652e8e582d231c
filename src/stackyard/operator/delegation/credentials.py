"""What an inner host is given to work with: a key pair and an API token of its own, made there."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import parse_json
from stackyard.clients.proxmox.access import (
    AccessRequest,
    TokenAnswerError,
    make_access,
    plan_access,
    read_access,
)
from stackyard.guard.features import Feature, list_privileges
from stackyard.operator.delegation.inner_host import BASE, InnerHostError

if TYPE_CHECKING:
    from stackyard.clients.proxmox.access import AccessCall
    from stackyard.operator.delegation.inner_host import InnerHost

__all__ = ["KEY_FILE", "PRIVILEGES", "TOKEN", "USER", "make_key", "make_token"]

KEY_FILE = f"{BASE}/key"
USER, TOKEN, ROLE = "stackyard@pve", "operator", "StackyardOperator"

# What creating, changing and removing guests needs, and nothing of users, permissions, other nodes or shells.
# A version of Proxmox that does not know one of them is not asked for it.
PRIVILEGES = tuple(sorted({one.privilege for one in list_privileges(set(Feature) - {Feature.HA})}))
_ACCESS = AccessRequest(
    role=ROLE,
    user=USER,
    token=TOKEN,
    privileges=PRIVILEGES,
    comment="Runs guests for an outer stackyard",
)

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
    access = _ShellAccess(inner)
    present = await read_access(access, _ACCESS)
    wanted = set(PRIVILEGES) & present.privileges
    if known and wanted <= await _privileges(inner, known, runtime, fingerprint):
        return known
    try:
        made = await make_access(access, _ACCESS, plan_access(_ACCESS, present, renews=True))
    except TokenAnswerError as err:
        raise InnerHostError(f"{inner.name}: {err.detail}") from err
    if made is None:
        raise InnerHostError(f"{inner.name}: no token was made. This is a bug in stackyard.")
    return made


@dataclass(frozen=True, slots=True)
class _ShellAccess:
    """Performs calls with `pveum` on the host."""

    inner: InnerHost

    async def perform(self, call: AccessCall) -> Any:
        if call.method == "GET" or call.is_secret:
            return await self.inner.ask("pveum", *call.words, is_secret=call.is_secret)
        return await self.inner.run(call.command)


async def _privileges(inner: InnerHost, token: str, runtime: str, fingerprint: str) -> set[str]:
    given = f"{token}\n{fingerprint}\n".encode()
    said = await inner.run(f"{runtime}/bin/python -I -c {shlex.quote(_ASK)}", stdin=given)
    try:
        return set(parse_json(said))
    except (ValueError, TypeError) as err:
        raise InnerHostError(f"{inner.name}: its API answered with no rights: {said[:200]!r}") from err
