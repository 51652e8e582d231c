"""A double of the Talos image factory: schematics, versions, extensions, and small images that VMs boot.

It keeps the schematics that were posted in `talos_schematics/<id>`: `yaml extensions kernel_args`. An image
of a schematic that nobody posted is not there. `GET` of an image answers with a redirect, as the public
factory does for images that it has made before; `HEAD` answers directly. Faults of the kind `factory` strike
requests.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import urllib.parse
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import web

from pvelab.faults.faults import Point
from pvelab.talos.images import make_image, parse_image_name
from stackyard.base import serving
from stackyard.base.serving import respond
from stackyard.talosapi.schematic import (
    QEMU_GUEST_AGENT,
    Schematic,
    SchematicError,
    canonical_yaml,
    parse_schematic,
    schematic_id,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pvelab.world.world import World

__all__ = ["VERSIONS", "Factory", "serve_factory"]

SCHEMATICS = "talos_schematics"
VERSIONS = ("v1.10.9", "v1.11.6", "v1.12.0", "v1.12.1", "v1.12.2", "v1.13.0")
_EXTENSIONS = (
    QEMU_GUEST_AGENT,
    *(
        f"siderolabs/{name}"
        for name in ("amd-ucode", "i915", "intel-ucode", "iscsi-tools", "nfs-utils", "tailscale")
    ),
    *("siderolabs/util-linux-tools", "siderolabs/zfs"),
)
_OVERLAYS = (("rpi_generic", "siderolabs/sbc-raspberrypi"), ("rock5b", "siderolabs/sbc-rockchip"))
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-[\w.]+)?")
_ID = re.compile(r"[0-9a-f]{64}")
_CACHED = "/cached"
_FAULT = "lab-fault"
_LARGEST_SCHEMATIC = 64 * 1024


@contextlib.asynccontextmanager
async def serve_factory(world: World, bind: str, port: int) -> AsyncIterator[str]:
    """Serve the factory until the end of the block; give its URL.

    Raises:
        ListenError: The port cannot be had.
    """
    async with serving.serve(Factory(world).answer, bind=bind, port=port) as server:
        yield server.url


class Factory:
    """Answers the requests of a factory.

    Args:
        world: The lab, which keeps its schematics.
    """

    def __init__(self, world: World) -> None:
        self._world = world

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request, unless a fault strikes it."""
        path = urllib.parse.unquote(request.raw_path.partition("?")[0])
        query = urllib.parse.parse_qs(request.raw_path.partition("?")[2])
        if path.startswith(f"{_CACHED}/"):
            # A fault has struck the request that led here, or none has.
            return await self._route(request, path, query.get(_FAULT, [""])[0])
        strike = self._world.faults.strike(Point.FACTORY, request.method, path, "*")
        how = "" if strike is None else strike.reason
        if strike is not None and strike.delay_s:
            await self._world.clock.sleep(strike.delay_s)
        if how == "down":
            return _drop(request)
        if how == "redirect-loop":
            return respond(302, headers={"Location": request.raw_path})
        return await self._route(request, path, how)

    async def _route(self, request: web.BaseRequest, path: str, how: str) -> web.StreamResponse:
        parts = [part for part in path.split("/") if part]
        match [request.method, *parts]:
            case ["GET", "healthz"]:
                return _text(200, "OK")
            case ["POST", "schematics"]:
                return await self._post_schematic(request)
            case ["GET", "schematics", found]:
                return self._get_schematic(found)
            case ["GET", "versions"]:
                return _json(200, list(VERSIONS))
            case ["GET", "version", version, "extensions" | "overlays" as kind, "official"]:
                return _list_official(version, kind)
            case ["HEAD" | "GET", "image" | "cached" as place, schematic, version, name]:
                image = self._image(schematic, version, name)
                if not isinstance(image, bytes):
                    return image
                if request.method == "GET" and place == "image":
                    return respond(302, headers={"Location": _lead_to_cache(request.raw_path, how)})
                return await _send(request, name, image, how)
            case ["GET" | "HEAD" | "POST", *_]:
                return _text(400 if parts[:1] in (["image"], ["version"]) else 404, "not found")
        return _text(405, "method not allowed")

    async def _post_schematic(self, request: web.BaseRequest) -> web.Response:
        data = await request.read()
        if len(data) > _LARGEST_SCHEMATIC:
            return _text(400, "schematic is too large")
        try:
            schematic = parse_schematic(data)
        except SchematicError as err:
            return _text(400, f"yaml: unmarshal errors: {err}")
        found = self.add(schematic)
        return _json(201, {"id": found, "schematic": canonical_yaml(schematic)})

    def add(self, schematic: Schematic) -> str:
        """Keep a schematic; return its id."""
        found = schematic_id(schematic)
        document = {
            "yaml": canonical_yaml(schematic),
            "extensions": list(schematic.extensions),
            "kernel_args": list(schematic.extra_kernel_args),
        }
        if self._world.store.get(SCHEMATICS, found) != document:
            with self._world.store.transaction():
                self._world.store.put(SCHEMATICS, found, document)
        return found

    def _get_schematic(self, found: str) -> web.Response:
        document = self._world.store.get(SCHEMATICS, found)
        if document is None:
            return _text(404, f'schematic ID "{found}" not found')
        return respond(200, str(document["yaml"]).encode(), content_type="application/yaml")

    def _image(self, schematic: str, version: str, name: str) -> bytes | web.Response:
        """Return an image, or why there is none."""
        if not _VERSION.fullmatch(version):
            return _text(500, f"error parsing version: Invalid character(s) found in {version!r}")
        if name.endswith((".sha256", ".sha512", ".sig")):
            return _text(402, "checksums and signatures are part of the enterprise edition")
        named = parse_image_name(name)
        if named is None or not _ID.fullmatch(schematic):
            return _text(400, f"invalid image path: {name}")
        document = self._world.store.get(SCHEMATICS, schematic)
        tag = f"v{version.removeprefix('v')}"
        if document is None or tag not in VERSIONS:
            what = f'schematic ID "{schematic}"' if document is None else f"version {tag}"
            return _text(404, f"{what} not found")
        said, kind = named
        contents = {key: document[key] for key in ("extensions", "kernel_args")}
        return make_image({"schematic": schematic, "version": tag, **said, **contents}, kind)


def _lead_to_cache(raw_path: str, how: str) -> str:
    path, _, query = raw_path.replace("/image", _CACHED, 1).partition("?")
    queries = [part for part in (query, f"{_FAULT}={how}" if how else "") if part]
    return "?".join((path, "&".join(queries))) if queries else path


async def _send(request: web.BaseRequest, name: str, body: bytes, how: str) -> web.StreamResponse:
    wanted = urllib.parse.parse_qs(request.raw_path.partition("?")[2]).get("filename", [name])[0]
    plain = re.sub(r'["\\/]', "_", wanted)
    headers = {
        "Content-Disposition": f'attachment; filename="{plain}"',
        "Content-Type": "application/octet-stream",
        "ETag": f'"{hashlib.sha256(body).hexdigest()[:32]}"',
    }
    if request.method == "HEAD":
        return respond(200, headers={**headers, "Content-Length": str(len(body))})
    if how == "wrong-bytes":
        body = bytes(one ^ 0xFF for one in body[:64]) + body[64:]
    if how != "half-download":
        return respond(200, body, headers=headers)
    half = web.StreamResponse(headers={**headers, "Content-Length": str(len(body))})
    await half.prepare(request)
    await half.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.close()
    return half


def _list_official(version: str, kind: str) -> web.Response:
    tag = f"v{version.removeprefix('v')}"
    if not _VERSION.fullmatch(version):
        return _text(500, f"error parsing version: Invalid character(s) found in {version!r}")
    if tag not in VERSIONS:
        return _text(404, f"version {tag} not found")
    if kind == "overlays":
        rows: list[dict[str, Any]] = [
            {"name": name, "image": image, "ref": f"{image}:{tag}", "digest": _digest(image, tag)}
            for name, image in _OVERLAYS
        ]
    else:
        rows = [
            {
                "name": name,
                "ref": f"ghcr.io/{name}:{tag}",
                "digest": _digest(name, tag),
                "author": "Sidero Labs",
                "description": name.rpartition("/")[2],
            }
            for name in _EXTENSIONS
        ]
    return _json(200, rows)


def _digest(name: str, tag: str) -> str:
    return f"sha256:{hashlib.sha256(f'{name}:{tag}'.encode()).hexdigest()}"


def _drop(request: web.BaseRequest) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return _text(503, "dropped")


def _json(status: int, value: Any) -> web.Response:
    return respond(status, orjson.dumps(value))


def _text(status: int, text: str) -> web.Response:
    return respond(status, f"{text}\n".encode(), content_type="text/plain; charset=utf-8")
