"""JSON-RPC 2.0 over a websocket: `/api/current`, which 25.04 and later have."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import WSMsgType, web

from pvelab.truenas.problems import NOT_AUTHENTICATED, CallError, ValidationErrors, name_of
from stackyard.base.documents.jsontext import JsonError, parse_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from pvelab.truenas.calls import Calls
    from pvelab.truenas.login import Logins

__all__ = ["RpcConnection"]

_INVALID_JSON = -32700
_INVALID_REQUEST = -32600
_NO_METHOD = -32601
_INVALID_PARAMS = -32602
_CALL_ERROR = -32001
_LOGIN = "auth.login_with_api_key"
_LOGIN_EX = "auth.login_ex"
_KNOWN = frozenset(("jsonrpc", "id", "method", "params"))
_LARGEST = 64 * 1024


class RpcConnection:
    """One connection: it is logged in or not.

    Args:
        calls: The methods.
        logins: Who may call them.
        drops_answers: Returns whether the connection is to break in place of the answer to a method.
        has_plain_login: Whether there is a login with nothing but a key, which releases before 27 have.
    """

    def __init__(
        self,
        calls: Calls,
        logins: Logins,
        drops_answers: Callable[[str], bool],
        *,
        has_plain_login: bool = True,
    ) -> None:
        self._logins_by = {_LOGIN_EX, *([_LOGIN] if has_plain_login else [])}
        self._calls = calls
        self._logins = logins
        self._drops_answers = drops_answers
        self._is_logged_in = False

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer messages until the client is gone."""
        socket = web.WebSocketResponse(max_msg_size=_LARGEST)
        await socket.prepare(request)
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                await socket.close(code=1003, message=b"Invalid websocket message type")
                break
            method, answer = self._answer(message.data)
            if self._drops_answers(method):
                if request.transport is not None:
                    request.transport.abort()
                break
            if answer is not None:
                await socket.send_str(orjson.dumps(answer).decode())
        return socket

    def _answer(self, text: str) -> tuple[str, dict[str, Any] | None]:
        """Return the method that a message calls, and the answer to it; a notification has none."""
        try:
            message = parse_json(text.encode())
        except JsonError as err:
            return "", _error(None, _INVALID_JSON, str(err))
        if not _is_request(message):
            return "", _error(None, _INVALID_REQUEST, "the message is not a request of JSON-RPC 2.0")
        method, number = str(message["method"]), message.get("id")
        if method not in self._logins_by and not self._calls.has(method):
            return method, _error(number, _NO_METHOD, "Method does not exist")
        try:
            result = self._call(method, message.get("params", []))
        except ValidationErrors as err:
            extra = [list(one) for one in err.found]
            return method, _error(
                number, _INVALID_PARAMS, "Invalid params", _data(errno.EINVAL, str(err), extra)
            )
        except CallError as err:
            return method, _error(number, _CALL_ERROR, "Method call error", _data(err.number, str(err)))
        return method, {"jsonrpc": "2.0", "result": result, "id": number}

    def _call(self, method: str, params: list[Any]) -> Any:
        if method == _LOGIN:
            self._is_logged_in = self._logins.check(str(params[0]) if params else "")
            return self._is_logged_in
        if method == _LOGIN_EX:
            answer = self._logins.check_user(params[0] if params else None)
            self._is_logged_in = answer["response_type"] == "SUCCESS"
            return answer
        if not self._is_logged_in:
            self._logins.count()
            raise CallError("Not authenticated", NOT_AUTHENTICATED)
        return self._calls.call(method, params)


def _is_request(message: Any) -> bool:
    return (
        isinstance(message, dict)
        and message.get("jsonrpc") == "2.0"
        and isinstance(message.get("method"), str)
        and isinstance(message.get("params", []), list)
        and message.keys() <= _KNOWN
    )


def _error(number: Any, code: int, text: str, data: dict[str, Any] | None = None) -> dict[str, Any]:
    error: dict[str, Any] = {"code": code, "message": text}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "error": error, "id": number}


def _data(number: int, reason: str, extra: list[Any] | None = None) -> dict[str, Any]:
    return {"error": number, "errname": name_of(number), "reason": reason, "trace": None, "extra": extra}
