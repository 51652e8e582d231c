"""API tokens: `/access/users/{userid}/token`. A secret is shown once, when it is created."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.access.user_file import clean_text, drop_from_acl, lock_user_file
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.generate import new_uuid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call

__all__ = ["create_token", "delete_token", "list_tokens", "read_token", "update_token"]


@route("GET /access/users/{userid}/token")
def list_tokens(call: Call) -> Any:
    """List the tokens of a user."""
    user = call.world.permissions.directory.user(call.params["userid"])
    return [{"tokenid": name, **token} for name, token in (user.get("tokens") or {}).items()]


@route("GET /access/users/{userid}/token/{tokenid}")
def read_token(call: Call) -> Any:
    """Answer what is known of a token, which is not its secret."""
    return _require(call)


@route("POST /access/users/{userid}/token/{tokenid}")
def create_token(call: Call) -> Any:
    """Make a token and its secret."""
    directory = call.world.permissions.directory
    directory.user(call.params["userid"])
    if directory.find_token(_full_name(call)) is not None:
        raise bad_parameter("tokenid", "Token already exists.")
    with lock_user_file(call, "generating token failed"):
        given = {key: call.params[key] for key in ("expire", "privsep") if key in call.params}
        if call.params.get("comment"):
            given["comment"] = call.params["comment"]
        token = {"privsep": 1, **given}
        _save(call, {"expire": 0, **token})
        return {"full-tokenid": _full_name(call), "info": token, "value": _new_secret(call)}


@route("PUT /access/users/{userid}/token/{tokenid}")
def update_token(call: Call) -> Any:
    """Change a token; with `regenerate`, give it a new secret."""
    params = call.params
    _require(call)
    with lock_user_file(call, "updating token info failed"):
        given = {key: params[key] for key in ("expire", "privsep", "comment") if key in params}
        token = {key: value for key, value in {**_require(call), **given}.items() if value != ""}
        for name in split_list(params.get("delete", "")):
            if name != "comment":
                raise bad_parameter("delete", f"unknown option '{name}'")
            token.pop(name, None)
        _save(call, token)
    if params.get("regenerate"):
        return {**token, "full-tokenid": _full_name(call), "value": _new_secret(call)}
    return token


@route("DELETE /access/users/{userid}/token/{tokenid}")
def delete_token(call: Call) -> None:
    """Remove a token and its ACL entries."""
    _require(call)
    with lock_user_file(call, "deleting token failed"):
        name = _full_name(call)
        with call.store.edit("users", call.params["userid"]) as user:
            del user["tokens"][call.params["tokenid"]]
        call.store.delete("token_secrets", name)
        drop_from_acl(call.store, "tokens", lambda ident: ident == name)


def _require(call: Call) -> Mapping[str, Any]:
    return call.world.permissions.directory.token(call.params["userid"], call.params["tokenid"])


def _full_name(call: Call) -> str:
    return f"{call.params['userid']}!{call.params['tokenid']}"


def _save(call: Call, token: Mapping[str, Any]) -> None:
    with call.store.edit("users", call.params["userid"]) as user:
        if not user:
            raise PveError(f"no such user ('{call.params['userid']}')")
        comment = clean_text(str(token.get("comment", "")))
        kept = {key: value for key, value in token.items() if key != "comment"}
        user.setdefault("tokens", {})[call.params["tokenid"]] = (
            {**kept, "comment": comment} if comment else kept
        )


def _new_secret(call: Call) -> str:
    secret = new_uuid()
    call.store.put("token_secrets", _full_name(call), {"value": secret})
    return secret
