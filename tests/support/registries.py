"""Registries and mirrors over HTTPS for tests: the registry protocol, a network mirror, an OCI registry.

Everything is served by one server on the loopback address with a certificate of its own, which clients trust
through `SSL_CERT_FILE`. The packages are tiny archives: an engine that locks them only hashes them.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import ssl
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from stackyard.base.serving.certificate import make_certificate

PLATFORMS = ("linux_amd64", "darwin_arm64", "windows_amd64")
_INDEX = "application/vnd.oci.image.index.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def package(kind: str, version: str, platform: str) -> bytes:
    """Return the archive of a provider, the same each time."""
    text = f"#!/bin/sh\n# {version} {platform}\nexit 1\n"
    return _zip(f"terraform-provider-{kind}_v{version}", text)


def _zip(name: str, text: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
        entry.external_attr = 0o755 << 16
        archive.writestr(entry, text)
    return stream.getvalue()


def fill_mirror(folder: Path, address: str, versions: Sequence[str], *, is_packed: bool = True) -> None:
    """Write a filesystem mirror of a provider, in one of its two layouts."""
    kind = address.rpartition("/")[2]
    for version in versions:
        for platform in PLATFORMS:
            data = package(kind, version, platform)
            if is_packed:
                path = folder / address / f"terraform-provider-{kind}_{version}_{platform}.zip"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            else:
                path = folder / address / version / platform
                path.mkdir(parents=True, exist_ok=True)
                with zipfile.ZipFile(io.BytesIO(data)) as archive:
                    archive.extractall(path)


class Registries:
    """A server with registries.

    Attributes:
        providers: Versions by `namespace/type`.
        modules: Versions by `namespace/name/system`.
        module_code: The code of a module by `namespace/name/system/version`.
        oci_modules: Tags of modules by repository.
        token: The token that is needed, where one is.
        asked: The paths that were asked for.
        answers: By path, another status and body than the usual ones.
    """

    def __init__(self, folder: Path) -> None:
        self.providers: dict[str, Sequence[str]] = {}
        self.modules: dict[str, Sequence[str]] = {}
        self.module_code: dict[str, str] = {}
        self.oci_modules: dict[str, Sequence[str]] = {}
        self.token: str | None = None
        self.needs_oci_token = False
        self.page = 1000
        self.asked: list[str] = []
        self.answers: dict[str, tuple[int, bytes, Mapping[str, str]]] = {}
        self.port = 0
        self.authority = folder / "authority.pem"

    @property
    def host(self) -> str:
        """The host as addresses name it."""
        return f"localhost:{self.port}"

    @property
    def url(self) -> str:
        """The address of the network mirror."""
        return f"https://{self.host}/mirror/"

    @property
    def environment(self) -> dict[str, str]:
        """What makes clients trust it."""
        return {"SSL_CERT_FILE": str(self.authority)}

    async def answer(self, request: web.Request) -> web.Response:
        """Answer one request."""
        path = request.path
        self.asked.append(path)
        if path in self.answers:
            status, body, headers = self.answers[path]
            return web.Response(status=status, body=body, headers=headers)
        parts = path.strip("/").split("/")
        if path == "/.well-known/terraform.json":
            return _json({"providers.v1": "/providers/", "modules.v1": "/modules/v1"})
        if parts[0] == "v2":
            return self._oci(request, parts[1:])
        if self.token is not None and request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.Response(status=401)
        handler = {"providers": self._registry, "modules": self._modules, "mirror": self._mirror}
        found = handler.get(parts[0], lambda _: None)(parts[1:])
        if parts[0] == "token":
            found = _json({"token": "anonymous-token"})
        if parts[0] == "archive":
            found = web.Response(body=package(*parts[1:4]))
        if parts[0] == "module":
            text = self.module_code["/".join(parts[1:]).removesuffix(".zip")]
            found = web.Response(body=_zip("main.tf", text), content_type="application/zip")
        return found or web.Response(status=404)

    def _registry(self, parts: list[str]) -> web.Response | None:
        name, kind = "/".join(parts[:2]), parts[1]
        if name not in self.providers:
            return None
        platforms = [dict(zip(("os", "arch"), one.split("_"), strict=True)) for one in PLATFORMS]
        if parts[2] == "versions":
            rows = [
                {"version": one, "protocols": ["6.0"], "platforms": platforms} for one in self.providers[name]
            ]
            return _json({"versions": rows})
        version = parts[2]
        sums = "".join(
            f"{_sha(package(kind, version, one))}  terraform-provider-{kind}_{version}_{one}.zip\n"
            for one in PLATFORMS
        )
        if parts[-1] == "SHA256SUMS":
            return web.Response(text=sums)
        if parts[-1] == "SHA256SUMS.sig":
            return web.Response(body=b"none")
        platform = f"{parts[4]}_{parts[5]}"
        base = f"https://{self.host}/providers/{name}/{version}"
        return _json(
            {
                "protocols": ["6.0"],
                "os": parts[4],
                "arch": parts[5],
                "filename": f"terraform-provider-{kind}_{version}_{platform}.zip",
                "download_url": f"https://{self.host}/archive/{kind}/{version}/{platform}",
                "shasum": _sha(package(kind, version, platform)),
                "shasums_url": f"{base}/SHA256SUMS",
                "shasums_signature_url": f"{base}/SHA256SUMS.sig",
                "signing_keys": {"gpg_public_keys": []},
            }
        )

    def _modules(self, parts: list[str]) -> web.Response | None:
        name = "/".join(parts[1:4])
        if name not in self.modules:
            return None
        if parts[4] == "versions":
            rows = [{"version": one} for one in self.modules[name]]
            return _json({"modules": [{"versions": rows}]})
        source = f"https://{self.host}/module/{name}/{parts[4]}.zip"
        return web.Response(status=204, headers={"X-Terraform-Get": source})

    def _mirror(self, parts: list[str]) -> web.Response | None:
        name, kind = "/".join(parts[1:3]), parts[2]
        if name not in self.providers:
            return None
        if parts[3] == "index.json":
            return _json({"versions": {one: {} for one in self.providers[name]}})
        version = parts[3].removesuffix(".json")
        archives = {one: {"url": f"/archive/{kind}/{version}/{one}"} for one in PLATFORMS}
        return _json({"archives": archives})

    def _oci(self, request: web.Request, parts: list[str]) -> web.Response:
        sent = request.headers.get("Authorization")
        if self.needs_oci_token and sent != "Bearer anonymous-token":
            words = f'Bearer realm="https://{self.host}/token",service="test",scope="repository:x:pull"'
            return web.Response(status=401, headers={"WWW-Authenticate": words})
        if not parts or parts == [""]:
            return web.Response()
        name, kind = "/".join(parts[:2]), parts[1]
        tags = self.providers.get(name) or self.oci_modules.get(name)
        if tags is None:
            return web.Response(status=404)
        if parts[2] == "tags":
            return self._tags(request, name, ["latest", *tags])
        objects = self._objects(name, kind) if name in self.providers else _module_objects(tags)
        if parts[2] == "blobs":
            return web.Response(body=objects[parts[3]][1])
        media, body = objects[parts[3]]
        headers = {"Content-Type": media, "Docker-Content-Digest": _digest(body)}
        return web.Response(body=body, headers=headers)

    def _tags(self, request: web.Request, name: str, tags: Sequence[str]) -> web.Response:
        start = int(request.query.get("last", 0))
        shown = tags[start : start + self.page]
        headers = {}
        if start + self.page < len(tags):
            headers["Link"] = f'</v2/{name}/tags/list?last={start + self.page}>; rel="next"'
        return _json({"name": name, "tags": shown}, headers)

    def _objects(self, name: str, kind: str) -> dict[str, tuple[str, bytes]]:
        found: dict[str, tuple[str, bytes]] = {_digest(b"{}"): ("application/json", b"{}")}
        for version in self.providers[name]:
            listed = []
            for platform in PLATFORMS:
                data = package(kind, version, platform)
                found[_digest(data)] = ("archive/zip", data)
                manifest = _encoded(
                    {
                        "schemaVersion": 2,
                        "mediaType": _MANIFEST,
                        "artifactType": "application/vnd.opentofu.provider-target",
                        "config": _described(b"{}", "application/vnd.oci.empty.v1+json"),
                        "layers": [_described(data, "archive/zip")],
                    }
                )
                found[_digest(manifest)] = (_MANIFEST, manifest)
                system, _, architecture = platform.partition("_")
                listed.append(
                    {
                        **_described(manifest, _MANIFEST),
                        "artifactType": "application/vnd.opentofu.provider-target",
                        "platform": {"os": system, "architecture": architecture},
                    }
                )
            index = _encoded(
                {
                    "schemaVersion": 2,
                    "mediaType": _INDEX,
                    "artifactType": "application/vnd.opentofu.provider",
                    "manifests": listed,
                }
            )
            found[_digest(index)] = found[version] = (_INDEX, index)
        return found


def _module_objects(tags: Sequence[str]) -> dict[str, tuple[str, bytes]]:
    found: dict[str, tuple[str, bytes]] = {_digest(b"{}"): ("application/json", b"{}")}
    for tag in tags:
        data = _zip("main.tf", f'output "tag" {{\n  value = "{tag}"\n}}\n')
        manifest = _encoded(
            {
                "schemaVersion": 2,
                "mediaType": _MANIFEST,
                "artifactType": "application/vnd.opentofu.modulepkg",
                "config": _described(b"{}", "application/vnd.oci.empty.v1+json"),
                "layers": [_described(data, "archive/zip")],
            }
        )
        found[_digest(data)] = ("archive/zip", data)
        found[_digest(manifest)] = found[tag] = (_MANIFEST, manifest)
    return found


def _json(value: Any, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.json_response(value, headers=headers)


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _digest(data: bytes) -> str:
    return f"sha256:{_sha(data)}"


def _described(data: bytes, media: str) -> dict[str, Any]:
    return {"mediaType": media, "digest": _digest(data), "size": len(data)}


@contextmanager
def serve_registries(folder: Path) -> Iterator[Registries]:
    """Serve registries for the length of the block."""
    registries = Registries(folder)
    certificate = make_certificate(["localhost", "127.0.0.1"])
    registries.authority.write_bytes(certificate.certificate_pem)
    (folder / "key.pem").write_bytes(certificate.key_pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(registries.authority, folder / "key.pem")
    loop, ready = asyncio.new_event_loop(), threading.Event()
    runner: list[web.AppRunner] = []

    async def start() -> None:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", registries.answer)
        runner.append(web.AppRunner(app))
        await runner[0].setup()
        site = web.TCPSite(runner[0], "127.0.0.1", 0, ssl_context=context)
        await site.start()
        registries.port = runner[0].addresses[0][1]
        ready.set()

    def run() -> None:
        loop.run_until_complete(start())
        loop.run_forever()
        loop.run_until_complete(runner[0].cleanup())
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait(30)
    try:
        yield registries
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
