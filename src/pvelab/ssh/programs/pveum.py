"""`pveum`: users, groups, roles, permissions, realms, tokens and pools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.ssh.programs.cli.model import STRING, Alias, Command, Tree, optional
from pvelab.ssh.programs.cli.output import Columns, print_result, table
from pvelab.ssh.programs.cli.run import Tool
from pvelab.ssh.programs.inputs import password_from

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pvelab.ssh.programs.cli.model import CommandCall, PrintedAnswer

__all__ = ["PVEUM"]

_TOKEN = "/access/users/{userid}/token/{tokenid}"  # noqa: S105 - a path


async def _print_permissions(shown: PrintedAnswer) -> None:
    if shown.options.get("output-format", "text") != "text":
        await print_result(shown)
        return
    rows = [
        {
            "path": path,
            "permissions": "\n".join(f"{name} (*)" if sure else name for name, sure in sorted(held.items())),
        }
        for path, held in sorted(shown.data.items())
    ]
    columns = Columns(
        names=("path", "permissions"),
        schemas={},
        renderers={},
        titles={"path": "ACL path", "permissions": "Permissions"},
    )
    if rows and not shown.options.get("quiet"):
        await shown.streams.say(table(rows, columns, shown.options).removesuffix("\n"))
    await shown.streams.say("Permissions marked with '(*)' have the 'propagate' flag set.")


async def _print_ticket(shown: PrintedAnswer) -> None:
    await shown.streams.say(str(shown.data["ticket"]))


async def _list_factors(asked: CommandCall) -> int:
    user = asked.parameters.get("userid")
    if user is not None:
        rows = await asked.session.call("GET", f"/access/tfa/{user}")
        await _print_factors(asked, rows, "")
        return 0
    users = await asked.session.call("GET", "/access/tfa")
    for number, row in enumerate(sorted(users, key=lambda row: str(row["userid"]))):
        await asked.streams.say(f"{chr(10) if number else ''}{row['userid']}:")
        await _print_factors(asked, row["entries"], "    ")
    return 0


async def _print_factors(asked: CommandCall, rows: Sequence[Mapping[str, Any]], indent: str) -> None:
    for number, row in enumerate(rows):
        kind, ident, told = f"{row['type']}:", row["id"], row.get("description") or ""
        start = "\n" if number else ""
        await asked.streams.say(f"{start}{indent}{kind:<9} {ident}\n{indent}    {told}")


async def _delete_factors(asked: CommandCall) -> int:
    user, wanted = asked.parameters["userid"], asked.parameters.get("id")
    rows = await asked.session.call("GET", f"/access/tfa/{user}")
    for ident in [row["id"] for row in rows] if wanted is None else [wanted]:
        await asked.session.call("DELETE", f"/access/tfa/{user}/{ident}")
    return 0


async def _of_token(asked: CommandCall) -> Mapping[str, Any]:
    given = dict(asked.parameters)
    return {**given, "userid": f"{given['userid']}!{given.pop('tokenid')}"}


async def _with_new_password(asked: CommandCall) -> Mapping[str, Any]:
    given = dict(asked.parameters)
    return {**given, "password": given.get("password") or await password_from(asked)}


async def _with_password(asked: CommandCall) -> Mapping[str, Any]:
    # A password on the command line is not accepted here.
    password = await password_from(asked, prompt="Enter password: ", confirmed=False)
    return {**asked.parameters, "password": password}


def _list(route: str, *arguments: str) -> Command:
    return Command(route=route, arguments=arguments, show=print_result, formats=True)


def _make_commands(base: str, key: str, *, query: bool = False) -> dict[str, Command]:
    """Return how objects of a kind are added, changed, removed and listed."""
    one = base if query else f"{base}/{{{key}}}"
    return {
        "add": Command(route=f"POST {base}", arguments=(key,)),
        "delete": Command(route=f"DELETE {one}", arguments=(key,)),
        "list": _list(f"GET {base}"),
        "modify": Command(route=f"PUT {one}", arguments=(key,)),
    }


_PERMISSIONS = Command(
    route="GET /access/permissions", arguments=("userid",), show=_print_permissions, formats=True
)
_TOKENS: Tree = {
    "add": _list(f"POST {_TOKEN}", "userid", "tokenid"),
    "delete": _list(f"DELETE {_TOKEN}", "userid", "tokenid"),
    "list": _list("GET /access/users/{userid}/token", "userid"),
    "modify": _list(f"PUT {_TOKEN}", "userid", "tokenid"),
    "permissions": Command(
        route="GET /access/permissions",
        arguments=("userid", "tokenid"),
        parameters={"tokenid": STRING},
        adapt=_of_token,
        show=_print_permissions,
        formats=True,
    ),
    "remove": Alias("delete"),
}

_TREE: Tree = {
    "acl": {
        "delete": Command(route="PUT /access/acl", arguments=("path",), fixed={"delete": 1}),
        "list": _list("GET /access/acl"),
        "modify": Command(route="PUT /access/acl", arguments=("path",), fixed={"delete": 0}),
    },
    "acldel": Alias("acl delete"),
    "aclmod": Alias("acl modify"),
    "group": _make_commands("/access/groups", "groupid"),
    "groupadd": Alias("group add"),
    "groupdel": Alias("group delete"),
    "groupmod": Alias("group modify"),
    "passwd": Command(
        route="PUT /access/password",
        arguments=("userid",),
        parameters={"password": optional(STRING)},
        adapt=_with_new_password,
    ),
    "pool": _make_commands("/pools", "poolid", query=True),
    "realm": {
        **_make_commands("/access/domains", "realm"),
        "sync": Command(route="POST /access/domains/{realm}/sync", arguments=("realm",)),
    },
    "role": _make_commands("/access/roles", "roleid"),
    "roleadd": Alias("role add"),
    "roledel": Alias("role delete"),
    "rolemod": Alias("role modify"),
    "ticket": Command(
        route="POST /access/ticket",
        arguments=("username",),
        parameters={"password": optional(STRING)},
        adapt=_with_password,
        show=_print_ticket,
    ),
    "user": {
        **_make_commands("/access/users", "userid"),
        "permissions": _PERMISSIONS,
        "tfa": {
            "delete": Command(
                own=_delete_factors,
                arguments=("userid",),
                parameters={"userid": STRING, "id": optional(STRING)},
            ),
            "list": Command(
                own=_list_factors, arguments=("userid",), parameters={"userid": optional(STRING)}
            ),
            "unlock": Command(route="PUT /access/users/{userid}/unlock-tfa", arguments=("userid",)),
        },
        "token": _TOKENS,
    },
    "useradd": Alias("user add"),
    "userdel": Alias("user delete"),
    "usermod": Alias("user modify"),
}

PVEUM = Tool("pveum", _TREE)
