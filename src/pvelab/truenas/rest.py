"""REST: `/api/v2.0`, which all releases before 26 have."""

from __future__ import annotations

import urllib.parse
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import orjson

from pvelab.truenas.problems import CallError, ValidationErrors
from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.serving import respond

if TYPE_CHECKING:
    from aiohttp import web

    from pvelab.truenas.calls import Calls
    from pvelab.truenas.login import Logins

__all__ = ["PREFIX", "answer_rest"]

PREFIX = "/api/v2.0/"
_BEARER = "Bearer "
# What changes the form of an answer, and is no filter.
_OPTIONS = ("limit", "offset", "count", "sort")


async def answer_rest(request: web.BaseRequest, calls: Calls, logins: Logins) -> web.Response:
    """Answer a request under `/api/v2.0`."""
    given = request.headers.get("Authorization", "")
    if not given.startswith(_BEARER) or not logins.is_good(given.removeprefix(_BEARER)):
        return respond(401, b"401: Unauthorized", content_type="text/plain; charset=utf-8")
    try:
        body = parse_json(await request.read() or b"null")
    except JsonError as err:
        return _json(400, {"message": str(err)})
    path, _, query = request.raw_path.partition("?")
    found = _find(request.method, path.removeprefix(PREFIX).rstrip("/"), query, body)
    if found is None:
        return respond(404, b"404: Not Found", content_type="text/plain; charset=utf-8")
    try:
        return _json(200, calls.call(*found))
    except ValidationErrors as err:
        return _refuse(request.method, err)
    except CallError as err:
        return _json(422, {"message": err.message, "errno": err.number})


def _find(method: str, path: str, query: str, body: Any) -> tuple[str, list[Any]] | None:
    """Return the method that a request calls with its parameters, None where there is no such path."""
    parts = path.split("/")
    match [method, *parts]:
        case ["GET", "core", "ping"]:
            return "core.ping", []
        case ["GET", "system", "version"]:
            return "system.version", []
        case ["GET", "system", "info"]:
            return "system.info", []
        case ["GET", "pool"]:
            return "pool.query", _read_filters(query)
        case ["GET", "pool", "dataset"]:
            return "pool.dataset.query", _read_filters(query)
        case ["POST", "pool", "dataset"]:
            return "pool.dataset.create", [body or {}]
        case ["GET", "pool", "dataset", "id", name]:
            return "pool.dataset.get_instance", [urllib.parse.unquote(name)]
        case ["PUT", "pool", "dataset", "id", name]:
            return "pool.dataset.update", [urllib.parse.unquote(name), body or {}]
    return None


def _read_filters(query: str) -> list[Any]:
    pairs = urllib.parse.parse_qsl(query, keep_blank_values=True)
    filters = [
        [key, "=", value] for key, value in pairs if key not in _OPTIONS and not key.startswith("extra.")
    ]
    options = {key: int(value) for key, value in pairs if key == "limit" and value.isdecimal()}
    return [filters, options]


def _refuse(method: str, err: ValidationErrors) -> web.Response:
    if method == "GET":
        return _json(404, {"message": err.found[0][1]})
    found = defaultdict[str, list[dict[str, Any]]](list)
    for where, why, number in err.found:
        found[where].append({"message": why, "errno": number})
    return _json(422, dict(found))


def _json(status: int, document: Any) -> web.Response:
    return respond(status, orjson.dumps(document, option=orjson.OPT_INDENT_2))
