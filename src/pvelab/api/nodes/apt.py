"""Package repositories of a node: `/nodes/{node}/apt/repositories`.

Documents: `apt/<node>` has the `files` by path, each a list of repositories as the API shows them; a node
without one has the files of a fresh installation.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import orjson

from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.sections import check_digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call

__all__ = [
    "add_repository",
    "change_repository",
    "index_apt",
    "list_repositories",
]

_SUITE = "trixie"
_FOLDER = "/etc/apt/sources.list.d"
_KEYRING = "/usr/share/keyrings/{}-archive-keyring.gpg"
_DEBIAN_PARTS = ["main", "contrib", "non-free-firmware"]
_CHANNELS = {"enterprise": "Enterprise", "no-subscription": "No-Subscription", "test": "Test"}
_CEPH = {"ceph-squid": "Squid", "ceph-tentacle": "Tentacle"}

Repository = dict[str, Any]
Files = dict[str, list[Repository]]


@route("GET /nodes/{node}/apt")
def index_apt(_call: Call) -> Any:
    """List what there is of packages."""
    return [{"id": name} for name in ("changelog", "repositories", "update", "versions")]


@route("GET /nodes/{node}/apt/repositories")
def list_repositories(call: Call) -> Any:
    """List the configured repositories by file, and which of the standard ones are among them."""
    files = _files(call)
    return {
        "files": [
            {
                "path": path,
                "file-type": "sources",
                "repositories": repositories,
                "digest": list(bytes.fromhex(_digest(repositories))),
            }
            for path, repositories in files.items()
        ],
        "errors": [],
        "digest": _digest(files),
        "infos": _infos(files),
        "standard-repos": _standard(files),
    }


@route("POST /nodes/{node}/apt/repositories")
def change_repository(call: Call) -> Any:
    """Enable or disable a repository."""
    files, path, index = _files(call), call.params["path"], call.params["index"]
    check_digest(_digest(files), call.params.get("digest"))
    if path not in files:
        raise PveError(f"invalid path - {path}")
    if not 0 <= index < len(files[path]):
        raise PveError(f"invalid index - {index}")
    if "enabled" in call.params:
        files[path][index] = {**files[path][index], "Enabled": call.params["enabled"]}
    call.store.put("apt", call.node, {"files": files})


@route("PUT /nodes/{node}/apt/repositories")
def add_repository(call: Call) -> Any:
    """Add a standard repository, or enable it where it is configured already."""
    files, handle = _files(call), call.params["handle"]
    check_digest(_digest(files), call.params.get("digest"))
    if handle not in _handles():
        where = f"on host product 'pve' and suite '{_SUITE}'"
        raise PveError(f"no standard repository for handle '{handle}' {where}")
    place = _find(files, handle)
    if place is None:
        files.setdefault(_path(handle), []).append(_repository(handle))
    else:
        path, index = place
        files[path][index] = {**files[path][index], "Enabled": 1}
    call.store.put("apt", call.node, {"files": files})


def _files(call: Call) -> Files:
    kept = call.store.get("apt", call.node)
    found: Mapping[str, list[Repository]] = _make_default_files() if kept is None else kept["files"]
    return {path: list(repositories) for path, repositories in found.items()}


def _make_default_files() -> Files:
    return {
        f"{_FOLDER}/ceph.sources": [_repository("ceph-squid-enterprise")],
        f"{_FOLDER}/debian.sources": [
            _entry(_debian("deb", "debian"), [_SUITE, f"{_SUITE}-updates"], _DEBIAN_PARTS, "debian"),
            _entry(_debian("security", "debian-security"), [f"{_SUITE}-security"], _DEBIAN_PARTS, "debian"),
        ],
        f"{_FOLDER}/pve-enterprise.sources": [_repository("enterprise")],
    }


def _entry(uri: str, suites: list[str], components: list[str], owner: str) -> Repository:
    return {
        "Types": ["deb"],
        "URIs": [uri],
        "Suites": suites,
        "Components": components,
        "Options": [{"Key": "Signed-By", "Values": [_KEYRING.format(owner)]}],
        "Comment": "",
        "FileType": "sources",
        "Enabled": 1,
    }


def _debian(host: str, archive: str) -> str:
    return f"http://{host}.debian.org/{archive}/"


def _proxmox(channel: str, product: str) -> str:
    scheme, host = ("https", "enterprise") if channel == "enterprise" else ("http", "download")
    return f"{scheme}://{host}.proxmox.com/debian/{product}"


def _handles() -> list[str]:
    return [*_CHANNELS, *(f"{release}-{channel}" for release in _CEPH for channel in _CHANNELS)]


def _parts(handle: str) -> tuple[str, str]:
    """Return the product and the channel of a standard repository."""
    for release in _CEPH:
        if handle.startswith(f"{release}-"):
            return release, handle.removeprefix(f"{release}-")
    return "pve", handle


def _repository(handle: str) -> Repository:
    product, channel = _parts(handle)
    component = f"pve-{channel}" if product == "pve" else channel
    return _entry(_proxmox(channel, product), [_SUITE], [component], "proxmox")


def _path(handle: str) -> str:
    product, channel = _parts(handle)
    if product != "pve":
        return f"{_FOLDER}/ceph.sources"
    return f"{_FOLDER}/{'pve-enterprise' if channel == 'enterprise' else 'proxmox'}.sources"


def _find(files: Files, handle: str) -> tuple[str, int] | None:
    wanted = _repository(handle)
    for path, repositories in files.items():
        for index, repository in enumerate(repositories):
            if all(repository[key] == wanted[key] for key in ("URIs", "Suites", "Components")):
                return path, index
    return None


def _standard(files: Files) -> list[dict[str, Any]]:
    rows = []
    for handle in _handles():
        product, channel = _parts(handle)
        name = _CHANNELS[channel] if product == "pve" else f"Ceph {_CEPH[product]} {_CHANNELS[channel]}"
        row: dict[str, Any] = {"handle": handle, "name": name, "description": f"{name} repository"}
        place = _find(files, handle)
        if place is not None:
            row["status"] = files[place[0]][place[1]]["Enabled"]
        rows.append(row)
    return rows


def _infos(files: Files) -> list[dict[str, Any]]:
    return [
        {
            "path": path,
            "index": index,
            "kind": "origin",
            "message": "Debian" if "debian.org" in repository["URIs"][0] else "Proxmox",
        }
        for path, repositories in files.items()
        for index, repository in enumerate(repositories)
    ]


def _digest(content: Any) -> str:
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
