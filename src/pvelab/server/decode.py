"""Reading the parameters of a request: query, form and JSON, as Proxmox's server reads them."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from typing import Any

from pvelab.server.problems import PveError
from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import LARGE

__all__ = ["decode_form", "decode_json", "decode_path"]


def decode_path(raw: str) -> str:
    """Return a path with its percent escapes undone and every run of slashes made one, none at the end."""
    return "/" + "/".join(part for part in urllib.parse.unquote(raw, errors="replace").split("/") if part)


def decode_form(text: bytes) -> dict[str, Any]:
    """Return the parameters of a query or form.

    A key that comes several times becomes a list; a blank value stays; a key without `=` has no value. What
    follows a second `=` is lost, as it is with Proxmox: senders escape it.
    """
    parameters: dict[str, Any] = {}
    for pair in text.replace(b";", b"&").split(b"&"):
        key, *values = pair.split(b"=")
        if not pair or not key:
            continue
        name = _text(key)
        if not values:
            parameters.setdefault(name, None)
            continue
        value, known = _text(values[0]), parameters.get(name)
        if known is None:
            parameters[name] = value
        elif isinstance(known, list):
            known.append(value)
        else:
            parameters[name] = [known, value]
    return parameters


def decode_json(body: bytes) -> dict[str, Any]:
    """Return the parameters of a JSON body.

    Raises:
        PveError: It is not a JSON object.
    """
    try:
        found = parse_json(body, LARGE)
    except JsonError as err:
        raise PveError(f"malformed JSON string: {err}") from err
    if not isinstance(found, Mapping):
        raise PveError("malformed JSON string: an object is required")
    return dict(found)


def _text(part: bytes) -> str:
    return urllib.parse.unquote_to_bytes(part.replace(b"+", b" ")).decode(errors="replace")
