"""Accounts: `/cluster/acme/account`, and what is known of the directories."""

from __future__ import annotations

import datetime
import urllib.parse
from typing import TYPE_CHECKING, Any

from pvelab.faults.latency import Work
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task

__all__ = [
    "deactivate_account",
    "index_acme",
    "list_accounts",
    "list_directories",
    "read_account",
    "read_meta",
    "read_terms",
    "register_account",
    "update_account",
]

_COLLECTION = "acme_accounts"
_DEFAULT = "default"
_DIRECTORIES = (
    {"name": "Let's Encrypt V2", "url": "https://acme-v02.api.letsencrypt.org/directory"},
    {"name": "Let's Encrypt V2 Staging", "url": "https://acme-staging-v02.api.letsencrypt.org/directory"},
)
_META: Mapping[str, Any] = {
    "termsOfService": "https://letsencrypt.org/documents/LE-SA-v1.5-February-24-2025.pdf",
    "website": "https://letsencrypt.org",
    "caaIdentities": ["letsencrypt.org"],
    "externalAccountRequired": 0,
}
_FIRST_ACCOUNT = 100_000_001


@route("GET /cluster/acme")
def index_acme(_call: Call) -> Any:
    """List what there is of ACME."""
    names = ("account", "tos", "meta", "directories", "plugins", "challenge-schema")
    return [{"name": name} for name in names]


@route("GET /cluster/acme/directories")
def list_directories(_call: Call) -> Any:
    """List the directories that Proxmox knows by name."""
    return [dict(directory) for directory in _DIRECTORIES]


@route("GET /cluster/acme/tos")
def read_terms(call: Call) -> Any:
    """Answer where the terms of service of a directory are."""
    return _meta(_directory(call))["termsOfService"]


@route("GET /cluster/acme/meta")
def read_meta(call: Call) -> Any:
    """Answer what a directory says of itself."""
    return dict(_meta(_directory(call)))


@route("GET /cluster/acme/account")
def list_accounts(call: Call) -> Any:
    """List the accounts, those that were given up too."""
    return [{"name": name} for name in call.store.items(_COLLECTION)]


@route("GET /cluster/acme/account/{name}")
def read_account(call: Call) -> Any:
    """Read one account."""
    return dict(_require(call))


@route("POST /cluster/acme/account")
def register_account(call: Call) -> Any:
    """Register an account, in a task."""
    store, name = call.store, call.params.get("name", _DEFAULT)
    taken = f"ACME account config file '{name}' already exists."
    if store.get(_COLLECTION, name) is not None:
        raise bad_parameter("name", taken)
    directory, terms = _directory(call), call.params.get("tos_url")
    contact = [f"mailto:{address}" for address in split_list(call.params["contact"])]
    clock = call.world.clock

    async def work(task: Task) -> None:
        if store.get(_COLLECTION, name) is not None:
            raise PveError(taken)
        task.log("Generating ACME account key..")
        task.log("Registering ACME account..")
        await task.spend(Work.CREATE)
        if terms is None and _is_known(directory):
            raise PveError("Registration failed: Error: must agree to terms of service")
        location = _location(directory, _FIRST_ACCOUNT + len(store.items(_COLLECTION)))
        created = datetime.datetime.fromtimestamp(clock.now(), datetime.UTC)
        account = {
            "contact": contact,
            "createdAt": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "status": "valid",
        }
        with task.step():
            document = {"account": account, "directory": directory, "location": location, "tos": terms}
            store.put(_COLLECTION, name, document)
        task.log(f"Registration successful, account URL: '{location}'")

    return call.start_task("acmeregister", "", work)


@route("PUT /cluster/acme/account/{name}")
def update_account(call: Call) -> Any:
    """Change the contacts of an account, or fetch its state again, in a task."""
    contact = [f"mailto:{address}" for address in split_list(call.params.get("contact", ""))]
    store, name = call.store, call.params["name"]
    _require(call)

    async def work(task: Task) -> None:
        await task.spend(Work.CONFIG)
        document = store.get(_COLLECTION, name)
        if document is None:
            raise PveError(f"ACME account config file '{name}' does not exist.")
        if contact:
            with task.step():
                account = {**document["account"], "contact": contact}
                store.put(_COLLECTION, name, {**document, "account": account})

    return call.start_task("acmeupdate" if contact else "acmerefresh", "", work)


@route("DELETE /cluster/acme/account/{name}")
def deactivate_account(call: Call) -> Any:
    """Give an account up, in a task; its file is kept under another name."""
    store, name = call.store, call.params["name"]
    _require(call)

    async def work(task: Task) -> None:
        await task.spend(Work.DELETE)
        document = store.get(_COLLECTION, name)
        if document is None:
            raise PveError(f"ACME account config file '{name}' does not exist.")
        kept = store.items(_COLLECTION)
        number = next(
            number for number in range(len(kept) + 1) if _deactivated_name(name, number) not in kept
        )
        folder = "/etc/pve/priv/acme"
        task.log(
            f"Renaming account file from '{folder}/{name}' to '{folder}/{_deactivated_name(name, number)}'"
        )
        with task.step():
            account = {**document["account"], "status": "deactivated"}
            store.delete(_COLLECTION, name)
            store.put(_COLLECTION, _deactivated_name(name, number), {**document, "account": account})

    return call.start_task("acmedeactivate", "", work)


def _deactivated_name(name: str, number: int) -> str:
    return f"_deactivated_{name}_{number}"


def _require(call: Call) -> Document:
    name = call.params.get("name", _DEFAULT)
    found = call.store.get(_COLLECTION, name)
    if found is None:
        raise bad_parameter("name", f"ACME account config file '{name}' does not exist.")
    return found


def _directory(call: Call) -> str:
    return str(call.params.get("directory", _DIRECTORIES[0]["url"]))


def _is_known(directory: str) -> bool:
    return any(known["url"] == directory for known in _DIRECTORIES)


def _meta(directory: str) -> Mapping[str, Any]:
    if not _is_known(directory):
        host = urllib.parse.urlsplit(directory).netloc
        raise PveError(f"Error: GET to {directory}\n500 Can't connect to {host}")
    return _META


def _location(directory: str, number: int) -> str:
    base = urllib.parse.urlsplit(directory)
    return f"{base.scheme}://{base.netloc}/acme/acct/{number}"
