"""What `stackyard connect` asks: whether to trust a certificate, a login, a token, a yes."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackyard.base import files
from stackyard.base.errors import StackyardError, UsageError
from stackyard.cli.views.text_writer import TextWriter
from stackyard.clients import proxmox
from stackyard.clients.proxmox.failures import Call
from stackyard.clients.proxmox.sign_in import (
    Challenge,
    SecondFactorError,
    answer_challenge,
    log_in,
    require_realm,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from stackyard.cli.session import Session
    from stackyard.clients.proxmox.server_certificate import ServerCertificate
    from stackyard.clients.proxmox.sign_in import Realm

__all__ = ["CertificateRefusedError", "Dialog", "NotConfirmedError"]

_PASSWORD, _OTP, _TOKEN = "STACKYARD_PVE_PASSWORD", "STACKYARD_PVE_OTP", "STACKYARD_PVE_TOKEN"
_USUAL_USER = "root@pam"
_HANDSHAKE = Call("GET", "/version")
_ANSWERABLE = ("totp", "recovery")


class CertificateRefusedError(StackyardError):
    """The certificate of the server is not verified by this system, and nobody said to trust it."""

    code = "E-CONNECT-CERTIFICATE"
    summary = "The certificate of the server is not trusted"
    default_remedy = "Compare its fingerprint with `pvenode cert info` on the node."


class NotConfirmedError(StackyardError):
    """The user was asked and said no; nothing was changed."""

    code = "E-CONNECT-NOT-CONFIRMED"
    summary = "Not confirmed"
    default_remedy = "Run the command again and confirm; `--yes` confirms without asking."


@dataclass(frozen=True, slots=True)
class Dialog:
    """Speaks to the user on the terminal; without one, only options and variables count."""

    session: Session

    @property
    def is_terminal(self) -> bool:
        """Whether somebody can be asked."""
        return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()

    def writer(self) -> TextWriter:
        """Return where to write what has to be read before an answer: not among the results."""
        self.session.progress.close()
        return TextWriter(sys.stderr, colour=False, is_terminal=self.is_terminal)

    def confirm(self, question: str, *, default: bool = False) -> bool:
        """Ask for a yes."""
        self.session.progress.close()
        return click.confirm(question, default=default, err=True)

    def trust(self, url: str, shown: ServerCertificate, wanted: str | None) -> str | None:
        """Return the fingerprint to pin; None where an authority of this system vouches for the server.

        Raises:
            UntrustedServerError: The server has another certificate than the one that is wanted.
            CertificateRefusedError: Nobody vouches for it.
        """
        self._show_certificate(url, shown)
        if wanted is not None:
            digest = proxmox.Trust(fingerprint=wanted).digest()
            if digest is None or digest.hex(":").upper() != shown.fingerprint:
                detail = (
                    f"The certificate of {url} has the fingerprint {shown.fingerprint}, not the one given."
                )
                remedy = "Compare it with `pvenode cert info` on the node. Nothing was sent to the server."
                raise proxmox.UntrustedServerError(_HANDSHAKE, detail, remedy=remedy, seen=shown.fingerprint)
            return shown.fingerprint
        if shown.is_verified:
            return None
        detail = f"This system does not verify the certificate of {url}: {shown.problem}."
        if not self.is_terminal:
            raise CertificateRefusedError(
                detail,
                remedy="Compare the fingerprint with `pvenode cert info` on the node. If it is the same:\n"
                f"  --fingerprint {shown.fingerprint}",
            )
        if not self.confirm("Is this the fingerprint of your server (`pvenode cert info`)? Trust it?"):
            raise CertificateRefusedError(detail)
        return shown.fingerprint

    def _show_certificate(self, url: str, shown: ServerCertificate) -> None:
        verdict = "verified by this system" if shown.is_verified else f"not verified: {shown.problem}"
        out = self.writer()
        out.line(f"The certificate of {url} ({verdict}):")
        out.line(f"  subject      {shown.subject}")
        out.line(f"  issuer       {shown.issuer}")
        out.line(f"  names        {', '.join(shown.names) or 'none'}")
        out.line(f"  valid        {shown.begins:%Y-%m-%d} to {shown.ends:%Y-%m-%d}")
        out.line(f"  fingerprint  {shown.fingerprint}")

    def sign_in(
        self, url: str, pin: str | None, realms: tuple[Realm, ...], values: Mapping[str, Any]
    ) -> tuple[proxmox.Ticket | proxmox.Token, str]:
        """Return the credentials that were given, and whose they are.

        Raises:
            UsageError: Something is missing, and nobody can be asked.
            LoginRefusedError: The password or the second factor is wrong.
        """
        text = _take_variable(_TOKEN)
        if values["token"] or values["token_file"] or (text and not values["user"]):
            token = self._read_token(values["token"], values["token_file"], text)
            caller = token.text.partition("=")[0]
            require_realm(caller.partition("!")[0], realms)
            return token, caller
        login = self.read_login(realms, values["user"], values["password_file"])
        return self.log_in(url, pin, login), login.username

    def log_in(self, url: str, pin: str | None, login: proxmox.Login) -> proxmox.Ticket:
        """Log in, with a second factor where the user has one.

        Raises:
            UsageError: The second factor is missing, and nobody can be asked.
            LoginRefusedError: The password or the second factor is wrong.
        """
        connection = proxmox.Connection(
            endpoint=url, credentials=login, trust=proxmox.Trust(fingerprint=pin), timeout_s=30.0
        )
        try:
            answer = self.session.run(log_in(connection, login))
        except proxmox.LoginRefusedError as err:
            err.remedy = (
                f"Check the password of {login.username}, and that the user is enabled. Nothing was changed."
            )
            raise
        if isinstance(answer, Challenge):
            answer = self.session.run(answer_challenge(connection, answer, self._read_code(answer)))
        return answer

    def read_login(
        self, realms: tuple[Realm, ...], user: str | None, password_file: str | None
    ) -> proxmox.Login:
        """Return who logs in, with the password: from the file, the variable, or the terminal.

        Raises:
            UnknownRealmError: The user names a realm that is not there.
            UsageError: Something is missing, and nobody can be asked.
        """
        if user is None:
            if not self.is_terminal:
                raise UsageError(
                    "There is no login, and no terminal to ask on.",
                    remedy=f"Give --user USER@REALM and {_PASSWORD}, or --token ID and {_TOKEN}.",
                )
            names = ", ".join(f"{one.name} ({one.type})" for one in realms)
            self.writer().line(f"Log in once, to create a token. It is not stored. Realms: {names}")
            user = click.prompt("User", default=_USUAL_USER, err=True)
        require_realm(user, realms)
        given = _read_secret_file(password_file) or _take_variable(_PASSWORD)
        return proxmox.Login(
            username=user, password=given or self._ask_secret(f"Password of {user}", _PASSWORD)
        )

    def _read_token(self, name: str | None, file: str | None, variable: str) -> proxmox.Token:
        if name is not None and "=" in name:
            raise UsageError(
                "--token has a secret in it, which every user of this machine can read on the command line.",
                remedy=f"Write --token USER@REALM!NAME; the secret is asked for, or read from {_TOKEN} or "
                "--token-file. Replace this token: its secret may be in the history of your shell.",
            )
        given = _read_secret_file(file) or variable
        if not given:
            given = self._ask_secret(f"Secret of the token {name}", _TOKEN)
        given = given.strip()
        if "=" not in given and name is not None:
            given = f"{name}={given}"
        if name is not None and given.partition("=")[0] != name:
            raise UsageError(f"--token names {name}, and the secret is of {given.partition('=')[0]}.")
        return proxmox.Token(text=given)

    def _read_code(self, challenge: Challenge) -> str:
        if challenge.kinds and not set(challenge.kinds) & set(_ANSWERABLE):
            kinds = ", ".join(challenge.kinds)
            refusal = f"{challenge.username} has a second factor that needs a browser: {kinds}"
            raise _make_factor_error(refusal)
        if given := _take_variable(_OTP):
            return given
        if not self.is_terminal:
            raise _make_factor_error(f"{challenge.username} has a second factor, and {_OTP} is not set")
        self.session.progress.close()
        return str(click.prompt("Code of the second factor (or a recovery key)", hide_input=True, err=True))

    def _ask_secret(self, what: str, variable: str) -> str:
        if not self.is_terminal:
            raise UsageError(
                f"{what}: it is not given, and there is no terminal to ask on.",
                remedy=f"Set {variable}, or name a file.",
            )
        self.session.progress.close()
        return str(click.prompt(what, hide_input=True, err=True))


def _make_factor_error(reason: str) -> SecondFactorError:
    from stackyard.clients.proxmox.failures import Refusal  # lazy: only for this error

    return SecondFactorError(Call("POST", "/access/ticket"), Refusal(status=401, reason=reason))


def _take_variable(name: str) -> str:
    """Return a secret of the environment, which programs that are started later do not get."""
    return os.environ.pop(name, "").strip("\r\n")


def _read_secret_file(name: str | None) -> str:
    return "" if name is None else files.read_text(Path(name)).strip("\r\n")
