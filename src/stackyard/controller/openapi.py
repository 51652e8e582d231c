"""The OpenAPI document of the controller, made from the table of its routes."""

from __future__ import annotations

import http
import re
from typing import Any

import stackyard
from stackyard.controller.refusals import Code
from stackyard.controller.routes import ROUTES, Route

__all__ = ["openapi", "render_page"]

_PARAMETERS = {
    "identity": ("The name of a guest, or of a spec.", r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,252}$"),
    "repo": ("The name of a repository.", r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"),
    "path": ("A path in it; slashes are not escaped.", r"^.+$"),
}


def openapi(version: str = stackyard.__version__) -> dict[str, Any]:
    """Return the document.

    Args:
        version: The version that it says it is of.
    """
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths[route.path] = {
            method.lower(): _operation(route, method) for method in route.methods if method != "HEAD"
        }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "stackyard controller",
            "version": version,
            "summary": "Specs, repositories and state over one HTTPS endpoint",
            "description": (
                "`HEAD` is answered wherever `GET` is. Below `/state/` is the state service, with a protocol "
                "of its own. Every error has the body `Error`."
            ),
        },
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "The token as the password, as git sends it.",
                },
            },
            "schemas": {"Error": _error_schema()},
        },
    }


def _operation(route: Route, method: str) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "responses": {str(status): _response(route, status) for status in route.all_statuses},
    }
    if route.needs_token:
        # The empty one: a posture may trust the network.
        operation["security"] = [{"bearer": []}, {"basic": []}, *([{}] if route.name == "spec" else [])]
    if method == "POST":
        kind = route.content.replace("-result", "-request")
        operation["requestBody"] = {"required": True, "content": {kind: {"schema": {"type": "string"}}}}
    return operation


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PARAMETERS[name][0],
            "schema": {"type": "string", "pattern": _PARAMETERS[name][1]},
        }
        for name in re.findall(r"{(\w+)}", route.path)
    ]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "description": meaning, "schema": {"type": "string"}}
        for name, meaning in route.query
    ]


def _response(route: Route, status: int) -> dict[str, Any]:
    phrase = http.HTTPStatus(status).phrase
    if status >= 400:
        schema = {"$ref": "#/components/schemas/Error"}
        return {"description": phrase, "content": {"application/json": {"schema": schema}}}
    return {"description": phrase, "content": {route.content: {}}}


def _error_schema() -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["error"],
        "additionalProperties": False,
        "properties": {
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "additionalProperties": False,
                "properties": {
                    "code": {"type": "string", "enum": [str(code) for code in Code]},
                    "message": {"type": "string"},
                },
            }
        },
    }


def render_page() -> str:
    """Return the reference page, in Markdown."""
    lines = [
        "# The API of the controller\n",
        "The same as [OpenAPI](controller-api.json), which the controller serves as `/openapi.json`.\n",
        "| methods | path | token | what it gives |",
        "|---|---|---|---|",
    ]
    for route in ROUTES:
        token = "posture" if route.name == "spec" else "needed" if route.needs_token else "none"
        lines.append(f"| {', '.join(route.methods)} | `{route.path}` | {token} | {route.summary} |")
        for name, meaning in route.query:
            lines.append(f"| | `?{name}=` | | {meaning} |")
    lines.append("| all | `/state/` | its own | The state service: states are below `/state/states/`. |")
    lines += [
        '\nErrors are `{"error": {"code": ..., "message": ...}}`:\n',
        "| code | meaning |",
        "|---|---|",
        *(f"| `{code}` | {code.meaning} |" for code in Code),
    ]
    return "\n".join(lines) + "\n"
