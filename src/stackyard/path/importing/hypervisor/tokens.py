"""The tokens of a cluster and their roles, which an import leaves out: it names each, and says why.

The engine imports no token. Proxmox shows its secret only once: the secrets of the site have to have it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.desired import Credentials, Secret
from stackyard.path.credentials.cluster import read_present
from stackyard.path.importing.hypervisor.survey import LeftOut
from stackyard.provider.resources.access.moments import read_moment
from stackyard.sources.hypervisor.build import build_desired

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.clients.proxmox.access_calls import AccessEntry, TokenSettings
    from stackyard.desired import Secrets
    from stackyard.path.importing.hypervisor.file import HypervisorWriter

__all__ = ["list_left_tokens"]

_KEPT = "api_tokens."


async def list_left_tokens(
    connection: proxmox.Connection, writer: HypervisorWriter, left_alone: frozenset[str]
) -> list[LeftOut]:
    """Return the tokens and roles of tokens that the file of a cluster does not describe.

    Args:
        connection: The way to the API.
        writer: The file; that of a node has no tokens.
        left_alone: Sections and objects that stay outside of everything.

    Raises:
        ProxmoxError: The cluster does not answer.
    """
    if writer.node is not None:
        return []
    try:
        async with proxmox.Client(connection) as client:
            present = await read_present(client)
    except proxmox.RefusedError as err:
        return [] if "tokens" in left_alone else [LeftOut(label="tokens", reason=err.detail)]
    described = _read_described(writer)
    known = {token.id for token in described.tokens}
    stores = dict(_list_stores(writer.resolver.secrets()))
    found = [
        LeftOut(label=f"tokens.{name}", reason=_explain(token, stores.get(name)))
        for name, token in sorted(present.tokens.items())
        if name not in known
    ]
    granted = {(one.path, one.token, one.role) for one in described.grants}
    found += [
        LeftOut(label=f"acl.{one.path}", reason=_explain_role(one, is_described=one.owner in known))
        for one in sorted(present.entries)
        if (one.path, one.owner, one.role) not in granted
    ]
    return [one for one in found if left_alone.isdisjoint((one.label, one.label.partition(".")[0]))]


def _read_described(writer: HypervisorWriter) -> Credentials:
    """Return what the file says of tokens; nothing where it is to be made."""
    if writer.is_new:
        return Credentials()
    return build_desired(writer.resolver.hypervisor(writer.name).model).credentials


def _list_stores(secrets: Secrets) -> Iterator[tuple[str, str]]:
    """Return the tokens whose secrets the site has, each with the name of its secret."""
    for name in secrets:
        if name.startswith(_KEPT):
            token_id, _, value = secrets.reveal(Secret(secret=name)).partition("=")
            if value:
                yield token_id, name.removeprefix(_KEPT)


def _explain(token: TokenSettings, store: str | None) -> str:
    entry = {
        "comment": token.comment and json.dumps(token.comment),
        "expiration_date": token.expires and f'"{read_moment(token.expires)}"',
        "privileges_separation": "" if token.separates else "false",
        "store": store if store is not None and store != token.name else "",
    }
    said = ", ".join(f"{name}: {value}" for name, value in entry.items() if value)
    written = f"to manage it, write `{token.id}: {{{said}}}` into `tokens`"
    if store is not None:
        return f"An import takes no token over. Its secret is `{_KEPT}{store}`: {written}."
    return f"Proxmox does not show its secret, and the site does not have it: {written} and the secret."


def _explain_role(entry: AccessEntry, *, is_described: bool) -> str:
    role = f"It gives the token {entry.owner} the role {entry.role}"
    values = f"path: {entry.path}, token_id: {entry.owner}, role_id: {entry.role}"
    values += "" if entry.propagate else ", propagate: false"
    if is_described:
        return f"{role}: to manage it, write `{{{values}}}` into `acl`."
    return f"{role}, which `tokens` does not have."
