"""The first calls to a server: whether it is a Proxmox VE, its realms, and a login with a second factor."""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import parse_json
from stackyard.base.errors import InvalidInputError, UnreachableError
from stackyard.base.redaction import Redactor
from stackyard.clients.proxmox.connection import Connection, Ticket, Trust
from stackyard.clients.proxmox.encoding import encode
from stackyard.clients.proxmox.failures import (
    Call,
    LoginRefusedError,
    ProxmoxUnreachableError,
    Refusal,
    make_refused_error,
)
from stackyard.clients.proxmox.transport import (
    EncodedForm,
    LostAnswerError,
    NotSentError,
    Transport,
    UnusableAnswerError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.clients.proxmox.connection import Login
    from stackyard.clients.proxmox.transport import Reply

__all__ = ["Challenge", "NotProxmoxError", "Realm", "SecondFactorError", "UnknownRealmError", "log_in"]
__all__ += ["answer_challenge", "read_realms", "require_realm"]

_DOMAINS = Call("GET", "/access/domains")
_TICKET = Call("POST", "/access/ticket")
_UNAUTHORIZED = 401
_TIMEOUT_S = 30.0
# Every Proxmox VE has both; other products of the family have one of them with a realm of their own.
_OWN_REALMS = frozenset(("pam", "pve"))
_OTHERS = {"pbs": "a Proxmox Backup Server", "pmg": "a Proxmox Mail Gateway"}


class NotProxmoxError(UnreachableError):
    """Something answers at the address, and it is not the API of Proxmox VE."""

    code = "E-PROXMOX-OTHER-SERVER"
    summary = "The server is not a Proxmox VE"
    default_remedy = "Check the address: it is the one of the web interface, as https://HOST:8006."


class UnknownRealmError(InvalidInputError):
    """A user names a realm that the cluster does not have."""

    code = "E-PROXMOX-REALM"
    summary = "There is no such realm"
    default_remedy = "Name the user as USER@REALM; `pam` has the users of Linux, `pve` those of Proxmox VE."


class SecondFactorError(LoginRefusedError):
    """The password is right, and the second factor is missing, wrong, or cannot be given here."""

    code = "E-PROXMOX-SECOND-FACTOR"
    summary = "Proxmox did not accept the second factor"
    default_remedy = (
        "Wait for the next code and try again. After eight wrong codes Proxmox locks them: "
        "`pveum user tfa unlock USER` unlocks, as root on a node. Or use a token: --token USER@REALM!NAME."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Realm:
    """A realm of users: its name, its type (`pam`, `pve`, `ldap`, ...) and its comment."""

    name: str
    type: str
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """A login that waits for its second factor.

    Attributes:
        username: Who logs in.
        ticket: Lets the user answer, and do nothing else.
        kinds: What is accepted: `totp`, `recovery`, `webauthn`, ...
    """

    username: str
    ticket: str = field(repr=False)
    kinds: tuple[str, ...]


async def read_realms(endpoint: str, trust: Trust) -> tuple[Realm, ...]:
    """Return the realms of a server, which every Proxmox tells without a login.

    Raises:
        NotProxmoxError: It is another server.
        UntrustedServerError: It is not the server that is trusted.
        ProxmoxUnreachableError: It does not answer.
    """
    connection = Connection(
        endpoint=endpoint, credentials=Ticket(ticket="", csrf_token=""), trust=trust, timeout_s=_TIMEOUT_S
    )
    try:
        reply = await _send(connection, _DOMAINS, None, Redactor())
    except UnusableAnswerError as err:
        raise NotProxmoxError(f"{endpoint} answered, and the answer {err}.") from err
    if reply.refusal is not None:
        raise NotProxmoxError(f"{endpoint} answered {_DOMAINS} with: {reply.refusal}.")
    rows = reply.data if isinstance(reply.data, list) else []
    realms = tuple(
        Realm(name=str(row["realm"]), type=str(row.get("type", "")), comment=str(row.get("comment", "")))
        for row in rows
        if isinstance(row, dict) and "realm" in row
    )
    names = {realm.name for realm in realms}
    if not names >= _OWN_REALMS:
        found = next((what for name, what in _OTHERS.items() if name in names), "no Proxmox VE")
        raise NotProxmoxError(f"{endpoint} is {found}: it does not have the realms `pam` and `pve`.")
    return realms


def require_realm(username: str, realms: tuple[Realm, ...]) -> None:
    """Refuse a user of a realm that is not there, before a password is sent.

    Raises:
        UnknownRealmError: It is not there, or not named.
    """
    name, _, realm = username.rpartition("@")
    known = ", ".join(f"{one.name} ({one.type})" for one in realms)
    if not name:
        raise UnknownRealmError(f"The user `{username}` has no realm. There are {known}.")
    if realm not in {one.name for one in realms}:
        raise UnknownRealmError(f"There is no realm `{realm}`. There are {known}.")


async def log_in(connection: Connection, login: Login) -> Ticket | Challenge:
    """Log in with a password.

    Args:
        connection: The server; its credentials are not used.
        login: Who, with which password.

    Returns:
        A ticket, or the challenge of a user who has a second factor.

    Raises:
        LoginRefusedError: The password is wrong, or there is no such user.
        ProxmoxUnreachableError: The server does not answer.
    """
    form: dict[str, str | int] = {"username": login.username, "password": login.password, "new-format": 1}
    data = await _post_login(connection, form, login.secrets)
    if data.get("NeedTFA"):
        ticket = str(data.get("ticket", ""))
        return Challenge(username=login.username, ticket=ticket, kinds=_read_kinds(ticket))
    return _read_ticket(data)


async def answer_challenge(connection: Connection, challenge: Challenge, code: str) -> Ticket:
    """Finish a login with a second factor.

    Args:
        connection: The server.
        challenge: What the first step answered.
        code: A code of an authenticator, or a recovery key.

    Raises:
        SecondFactorError: It is wrong, used, too old or locked; Proxmox does not say which.
        ProxmoxUnreachableError: The server does not answer.
    """
    code = code.strip()
    kind = "totp" if code.isdecimal() else "recovery"
    form: dict[str, str | int] = {
        "username": challenge.username,
        "tfa-challenge": challenge.ticket,
        "password": f"{kind}:{code}",
        "new-format": 1,
    }
    try:
        return _read_ticket(await _post_login(connection, form, (code, challenge.ticket)))
    except LoginRefusedError as err:
        raise SecondFactorError(err.call, err.refusal) from err


async def _post_login(
    connection: Connection, form: Mapping[str, str | int], secrets: tuple[str, ...]
) -> Mapping[str, Any]:
    body = EncodedForm(encode(form))
    try:
        reply = await _send(connection, _TICKET, body, Redactor(secrets))
    except UnusableAnswerError as err:
        raise NotProxmoxError(f"{connection.endpoint} answered, and the answer {err}.") from err
    if reply.refusal is not None:
        raise make_refused_error(_TICKET, reply.refusal)
    return reply.data if isinstance(reply.data, dict) else {}


async def _send(connection: Connection, call: Call, body: EncodedForm | None, redactor: Redactor) -> Reply:
    try:
        async with Transport(connection, redactor) as transport:
            return await transport.send(call, query="", body=body, headers={}, timeout_s=None)
    except NotSentError as err:
        raise ProxmoxUnreachableError(call, f"{call} could not be sent: {err}.") from err
    except LostAnswerError as err:
        raise ProxmoxUnreachableError(call, f"{call} was not answered: {err}.") from err


def _read_ticket(data: Mapping[str, Any]) -> Ticket:
    try:
        return Ticket(ticket=str(data["ticket"]), csrf_token=str(data["CSRFPreventionToken"]))
    except KeyError as err:
        refusal = Refusal(status=_UNAUTHORIZED, reason="the answer has no ticket")
        raise LoginRefusedError(_TICKET, refusal) from err


def _read_kinds(ticket: str) -> tuple[str, ...]:
    """Return what a challenge accepts: its ticket is `PVE:!tfa!{"totp":true}:TIME::SIGNATURE`."""
    text = urllib.parse.unquote(ticket.partition("!tfa!")[2].partition(":")[0])
    try:
        found = parse_json(text)
    except ValueError:
        return ()
    return tuple(kind for kind, wanted in found.items() if wanted) if isinstance(found, dict) else ()
