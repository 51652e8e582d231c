"""Definitions of storages: `/storage`, what Proxmox keeps in storage.cfg."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson

from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.generate import new_uuid
from pvelab.world.guests.guests import digest_of
from pvelab.world.sections import Kind, SectionFile, prefix_errors
from pvelab.world.storage.storages import type_of
from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import SMALL

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.store import Document

__all__ = ["create", "delete", "list_all", "read", "update"]

_SEEN_BY = ("Datastore.Audit", "Datastore.AllocateSpace")
_COMMON = ("nodes", "disable", "content")
_BACKUPS = ("prune-backups", "max-protected-backups")
_FOLDERS = ("mkdir", "create-base-path", "create-subdirs")
_FILES = (*_COMMON, *_BACKUPS, *_FOLDERS, "content-dirs", "format", "bwlimit", "preallocation")
_CHAIN = "snapshot-as-volume-chain"


def _kind(name: str, required: str, *optional: str, fixed: str = "") -> Kind:
    """Return a type; all of its required options are fixed."""
    needed = frozenset(required.split())
    return Kind(
        name=name,
        required=needed,
        optional=frozenset(optional),
        fixed=needed | frozenset(fixed.split()),
    )


_KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        _kind("dir", "path", *_FILES, "shared", "is_mountpoint", _CHAIN, fixed=_CHAIN),
        _kind("nfs", "path server export", *_FILES, "options", _CHAIN, fixed=_CHAIN),
        _kind(
            "cifs",
            "path server share",
            *(*_FILES, "subdir", "username", "password", "domain", "smbversion", "options", _CHAIN),
            fixed=_CHAIN,
        ),
        _kind(
            "cephfs",
            "path",
            *(*_COMMON, *_BACKUPS, *_FOLDERS, "content-dirs", "format", "bwlimit"),
            *("monhost", "subdir", "options", "username", "fuse", "keyring", "fs-name"),
        ),
        _kind(
            "btrfs",
            "path",
            *(*_COMMON, *_BACKUPS, *_FOLDERS, "shared", "format", "is_mountpoint", "nocow", "preallocation"),
        ),
        _kind(
            "lvm",
            "vgname",
            *(*_COMMON, "shared", "saferemove", "saferemove-stepsize", "saferemove_throughput", "base"),
            *("tagged_only", "bwlimit", _CHAIN),
            fixed="base",
        ),
        _kind("lvmthin", "thinpool vgname", *_COMMON, "bwlimit"),
        _kind("zfspool", "pool", *_COMMON, "blocksize", "sparse", "bwlimit", "mountpoint"),
        _kind(
            "zfs",
            "portal target pool blocksize iscsiprovider",
            *(*_COMMON, "nowritecache", "sparse", "comstar_hg", "comstar_tg", "lio_tpg", "bwlimit"),
            "zfs-base-path",
        ),
        _kind(
            "rbd",
            "",
            *(
                *_COMMON,
                "monhost",
                "pool",
                "data-pool",
                "namespace",
                "username",
                "krbd",
                "keyring",
                "bwlimit",
            ),
        ),
        _kind("iscsi", "portal target", *_COMMON, "bwlimit"),
        _kind("iscsidirect", "portal target", *_COMMON, "bwlimit"),
        _kind(
            "pbs",
            "server datastore",
            *(*_COMMON, *_BACKUPS, "namespace", "port", "username", "password", "encryption-key"),
            *("master-pubkey", "fingerprint"),
        ),
        Kind(
            name="esxi",
            required=frozenset(("server", "username")),
            optional=frozenset((*_COMMON, "shared", "password", "skip-cert-verification", "port")),
        ),
    )
}
_SECRETS: Mapping[str, frozenset[str]] = {
    "cifs": frozenset(("password",)),
    "cephfs": frozenset(("keyring",)),
    "rbd": frozenset(("keyring",)),
    "pbs": frozenset(("password", "encryption-key", "master-pubkey")),
    "esxi": frozenset(("password",)),
}
_LOCAL: Mapping[str, Any] = {
    "storage": "local",
    "type": "dir",
    "path": "/var/lib/vz",
    "prune-backups": "keep-all=1",
    "content": "backup,images,iso,rootdir,snippets,vztmpl",
}
_MOUNTED = frozenset(("nfs", "cifs", "cephfs"))
_WITH_PATH = frozenset((*_MOUNTED, "dir", "btrfs"))
_PATH = re.compile(r"/[-/a-zA-Z0-9_.@]+")
_ALL = ("images", "rootdir", "vztmpl", "iso", "backup", "snippets", "import")
# What each type can hold, and what it holds when nothing is said.
_CONTENTS: Mapping[str, tuple[frozenset[str], str]] = {
    "dir": (frozenset((*_ALL, "none")), "images,rootdir"),
    "nfs": (frozenset(_ALL), "images"),
    "cifs": (frozenset(_ALL), "images"),
    "cephfs": (frozenset(("vztmpl", "iso", "backup", "snippets", "import")), "backup"),
    "btrfs": (frozenset((*_ALL, "none")), "images,rootdir"),
    "lvm": (frozenset(("images", "rootdir")), "images"),
    "lvmthin": (frozenset(("images", "rootdir")), "images,rootdir"),
    "zfspool": (frozenset(("images", "rootdir")), "images,rootdir"),
    "zfs": (frozenset(("images",)), "images"),
    "rbd": (frozenset(("images", "rootdir")), "images"),
    "iscsi": (frozenset(("images", "none")), "images"),
    "iscsidirect": (frozenset(("images", "none")), "images"),
    "pbs": (frozenset(("backup", "none")), "backup"),
    "esxi": (frozenset(("import",)), "import"),
}


@route("GET /storage")
def list_all(call: Call) -> Any:
    """List the definitions that the caller may see."""
    wanted = call.params.get("type")
    return [
        _format_storage(call, storage, config)
        for storage, config in call.world.storages.all().items()
        if call.may(f"/storage/{storage}", *_SEEN_BY, any_of=True) and wanted in (None, config["type"])
    ]


@route("GET /storage/{storage}")
def read(call: Call) -> Any:
    """Answer one definition."""
    storage = str(call.params["storage"])
    return _format_storage(call, storage, call.world.storages.config(storage))


@route("POST /storage")
def create(call: Call) -> Any:
    """Define a storage."""
    storage, name = str(call.params["storage"]), str(call.params["type"])
    given = {key: value for key, value in call.params.items() if key not in ("storage", "type")}
    if not given.get("nodes"):
        given.pop("nodes", None)
    secrets = {key: str(given.pop(key)) for key in _SECRETS.get(name, frozenset()) if key in given}
    if name in _MOUNTED:
        given.setdefault("path", f"/mnt/pve/{storage}")
    config = {**_KINDS[name].validate(given, create=True), "storage": storage}
    if name in _WITH_PATH:
        if not _PATH.fullmatch(str(config["path"])):
            raise PveError(f"illegal path for directory storage: {config['path']}")
        config["path"] = "/" + "/".join(part for part in str(config["path"]).split("/") if part)
    _check_content(config)
    call.world.cluster.require_writable("storage.cfg")
    with prefix_errors("create storage failed"):
        if storage in call.world.storages.all():
            raise PveError(f"storage ID '{storage}' already defined")
        _require_online(call, config)
        returned = _add(call, config, secrets)
    _file(call).put(storage, config)
    return {"storage": storage, "type": name, **returned}


@route("PUT /storage/{storage}")
def update(call: Call) -> Any:
    """Change a definition."""
    storage = str(call.params["storage"])
    skipped = ("storage", "digest", "delete")
    given = {key: value for key, value in call.params.items() if key not in skipped}
    names = split_list(str(call.params.get("delete", "")))
    call.world.cluster.require_writable("storage.cfg")
    with prefix_errors("update storage failed"):
        _file(call).check_digest(call.params.get("digest"))
        config = call.world.storages.config(storage)
        kind = _KINDS[str(config["type"])]
        hidden = _SECRETS.get(kind.name, frozenset())
        secrets = {key: str(given.pop(key)) for key in hidden if key in given}
        changes = kind.validate(given, create=False)
        kept = kind.without(config, names, given)
        changed = {**kept, **changes}
        _check_content(changed)
        if storage == "local":
            changed.pop("nodes", None)
        returned = _renew(call, changed, secrets, [name for name in names if name in hidden])
    _file(call).put(storage, changed)
    if call.world.storages.is_shared(changed) != call.world.storages.is_shared(config):
        _rescope(call, storage, shared=call.world.storages.is_shared(changed))
    return {"storage": storage, "type": kind.name, **returned}


@route("DELETE /storage/{storage}")
def delete(call: Call) -> Any:
    """Remove a definition; what the storage holds stays where it is, out of sight."""
    storage, world = str(call.params["storage"]), call.world
    world.cluster.require_writable("storage.cfg")
    with prefix_errors("delete storage failed"):
        world.storages.config(storage)
        if any(str(one.get("base", "")).startswith(f"{storage}:") for one in world.storages.all().values()):
            raise PveError("can't remove storage - storage is used as base of another storage")
    _file(call).remove(storage)
    if storage == "local":
        # Proxmox has this one always, in its first state if need be.
        _file(call).put(storage, _LOCAL)
    call.store.delete("storage_secrets", storage)
    call.store.delete("acl", f"/storage/{storage}")
    for key in [key for key in call.store.items("pool_members") if key.endswith(f"/{storage}")]:
        if key.startswith("storage/"):
            call.store.delete("pool_members", key)
    return None


def _require_online(call: Call, config: Mapping[str, Any]) -> None:
    """Refuse a storage whose server does not answer, where the node that is asked is to use it."""
    storages, node = call.world.storages, call.world.cluster.local()
    is_used = not config.get("disable") and storages.is_on(config, node)
    if is_used and not storages.is_online(config, node):
        raise PveError(f"storage '{config['storage']}' is not online")


def _rescope(call: Call, storage: str, *, shared: bool) -> None:
    """Let all nodes see what a storage holds, or only one of them any more."""
    scope = "" if shared else call.world.cluster.local()
    for key, volume in list(call.store.items("volumes").items()):
        if volume["storage"] == storage and volume["scope"] != scope:
            call.store.delete("volumes", key)
            moved = {**volume, "scope": scope, "place": f"{scope}|{storage}"}
            call.store.put("volumes", f"{scope}|{volume['volid']}", moved)


def _file(call: Call) -> SectionFile:
    return SectionFile(call.store, "storages")


def _format_storage(call: Call, storage: str, config: Document) -> dict[str, Any]:
    """Return a definition as the API shows it, with what Proxmox adds when it reads the file."""
    shown = {**config, "storage": storage, "digest": digest_of(dict(call.world.storages.all()))}
    if not shown.get("content"):
        shown["content"] = _CONTENTS[str(config["type"])][1]
    if type_of(config).always_shared:
        shown["shared"] = 1
    return shown


def _check_content(config: dict[str, Any]) -> None:
    """Keep of the content types those that the storage can hold.

    Raises:
        PveError: Nothing is left, or `none` stands beside others.
    """
    possible, default = _CONTENTS[str(config["type"])]
    if "content" not in config:
        config["content"] = default
        return
    chosen = [kind for kind in dict.fromkeys(split_list(str(config["content"]))) if kind in possible]
    if "none" in chosen and len(chosen) > 1:
        raise PveError("unable to combine 'none' with other content types")
    if not chosen and "none" not in possible:
        raise PveError("storage does not support content type 'none'")
    config["content"] = ",".join(chosen) or "none"


def _add(call: Call, config: dict[str, Any], secrets: Mapping[str, str]) -> dict[str, Any]:
    """Do what a type does when a storage is added; return what the answer tells beside its name."""
    storage, name = str(config["storage"]), config["type"]
    if config.get("base"):
        base = str(config["base"]).partition(":")[0]
        found = call.world.storages.all().get(base)
        if found is None:
            raise PveError(f"base storage ID '{base}' does not exist")
        if found["type"] != "iscsi":
            raise PveError(f"unsupported base type '{found['type']}'")
    if name == "zfspool":
        config.setdefault("mountpoint", f"/{config['pool']}")
    if name == "zfs":
        config.setdefault("zfs-base-path", "/dev/zvol")
    if name == "esxi" and "password" not in secrets:
        raise PveError("missing password")
    if name == "pbs" and "master-pubkey" in secrets and "encryption-key" not in secrets:
        raise PveError("'master-pubkey' can only be used together with 'encryption-key'")
    returned = _encryption(config, secrets) if name == "pbs" else None
    if secrets:
        call.store.put("storage_secrets", storage, dict(secrets))
    return {} if returned is None else {"config": returned}


def _renew(
    call: Call, config: dict[str, Any], secrets: Mapping[str, str], removed: list[str]
) -> dict[str, Any]:
    storage = str(config["storage"])
    known = {
        key: value
        for key, value in (call.store.get("storage_secrets", storage) or {}).items()
        if key not in removed
    }
    returned = _encryption(config, secrets) if config["type"] == "pbs" else None
    if secrets or removed:
        call.store.put("storage_secrets", storage, {**known, **secrets})
    return {} if returned is None else {"config": returned}


def _encryption(config: dict[str, Any], secrets: Mapping[str, str]) -> dict[str, Any]:
    """Note which keys a backup server has; return the encryption key, which is shown this once only."""
    returned: dict[str, Any] = {}
    key = secrets.get("encryption-key")
    if key is not None:
        if key == "autogen":
            fingerprint = digest_of(new_uuid(), new_uuid())[:32]
            pairs = ":".join(fingerprint[at : at + 2] for at in range(0, 32, 2))
            key = orjson.dumps({"kdf": None, "data": new_uuid(), "fingerprint": pairs}).decode()
        decoded = _decode_key(key)
        config["encryption-key"] = decoded.get("fingerprint") or "1"
        returned["encryption-key"] = key
    if "master-pubkey" in secrets:
        config["master-pubkey"] = "1"
    return returned


def _decode_key(text: str) -> Mapping[str, Any]:
    try:
        decoded = parse_json(text, SMALL)
    except JsonError:
        decoded = None
    if not isinstance(decoded, Mapping) or "data" not in decoded:
        raise PveError("Value does not seems like a valid, JSON formatted encryption key!")
    return decoded
