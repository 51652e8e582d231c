"""The login before an apply: it makes the first token of a cluster, and sets passwords later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.base.errors import InvalidInputError, UsageError
from stackyard.cli.connect_prompts import Dialog
from stackyard.cli.runs.plan_options import settings_of
from stackyard.clients import proxmox
from stackyard.clients.proxmox.sign_in import read_realms
from stackyard.guard.addresses import split_names
from stackyard.operator.connect.bootstrap import BootstrapRequest, bootstrap
from stackyard.path.credentials.perform import LoginSession
from stackyard.path.environment import EnvironmentSource
from stackyard.path.hypervisor import HypervisorSource
from stackyard.path.target import find_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.cli.session import Session
    from stackyard.path.hypervisor import HypervisorLogin

__all__ = ["TokenElsewhereError", "log_in_first"]


class TokenElsewhereError(InvalidInputError):
    """The token of a node is described in the file of its cluster, whose target makes it."""

    code = "E-TOKEN-ELSEWHERE"
    summary = "Another file describes the token of this node"
    default_remedy = "Apply the file of the cluster first."


def log_in_first(session: Session, values: dict[str, Any]) -> LoginSession | None:
    """Log in as the user that the options name, and make the token of the site if it has none.

    Raises:
        UsageError: The options do not fit.
        StackyardError: The login or the token was refused.
    """
    user = values["login"]
    if user is None:
        if values["password_file"]:
            raise UsageError("--password-file is the password of --login USER@REALM, which is missing.")
        return None
    if values["dry_run"]:
        raise UsageError("--login makes the token of a site, and --dry-run changes nothing: leave one out.")
    environments = EnvironmentSource.find(values["site"], emit=session.emit)
    source = HypervisorSource(environments.resolver)
    _, name = find_target(values["target"], {source.kind: source})
    where = source.resolve_login(name, values["host"])
    _require_own(source, name, where)
    login = _log_in(session, values, where)
    request = BootstrapRequest(
        target=where.target,
        connection=proxmox.Connection(endpoint=where.endpoint, credentials=login.ticket, trust=where.trust),
        login=login,
        desired=where.desired,
        store=where.store,
        renewed=frozenset(one for names in values["renew_token"] for one in split_names(names)),
        tokens=where.tokens,
    )
    made = session.run(bootstrap(request, settings_of(values, environments.store), session.emit))
    if made is not None:
        text = f"The token {made} is made, and kept in the secrets as `api_tokens.{where.store}`."
        session.emit(events.LogLine(level=events.LogLevel.INFO, source="login", text=text))
        # It is renewed, and cannot be by a run that uses it.
        values["renew_token"] = tuple(sorted(request.renewed - {made}))
    return login


def _require_own(source: HypervisorSource, name: str, where: HypervisorLogin) -> None:
    described = source.find_token_file(where.store)
    if described not in (None, name):
        raise TokenElsewhereError(
            f"`api_tokens.{where.store}` is described in hypervisors/{described}.yaml.",
            remedy=f"Make it there: stackyard apply hypervisor:{described} --login root@pam",
        )


def _log_in(session: Session, values: Mapping[str, Any], where: HypervisorLogin) -> LoginSession:
    dialog = Dialog(session)
    realms = session.run(read_realms(where.endpoint, where.trust))
    login = dialog.read_login(realms, values["login"], values["password_file"])
    ticket = dialog.log_in(where.endpoint, where.trust.fingerprint, login)
    return LoginSession(user=login.username, password=login.password, ticket=ticket)
