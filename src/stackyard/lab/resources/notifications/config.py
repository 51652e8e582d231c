"""What is known of notifications: endpoints of several types, matchers, and what Proxmox brings along.

Documents: `notifications/<name>` with the `type` (`gotify`, `sendmail`, `smtp`, `webhook` or `matcher`) and
its options, in one file as on Proxmox, so that no two things have the same name. What is never shown is in
`notification_secrets/<name>`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.lab.digests import digest_of
from stackyard.lab.problems import PveError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.lab.call import Call
    from stackyard.lab.store import Document, Store

__all__ = [
    "MATCHER",
    "check_digest",
    "check_unique",
    "entities",
    "remove",
    "require",
    "save",
    "secrets_of",
    "shown",
]

COLLECTION, SECRETS = "notifications", "notification_secrets"
MATCHER = "matcher"
LOCK = "domain-notifications"

# What there is without anybody having made it; removing it brings it back as it was.
_BUILT_IN: Mapping[str, Mapping[str, Any]] = {
    "mail-to-root": {
        "type": "sendmail",
        "comment": "Send mails to root@pam's email address",
        "mailto-user": ["root@pam"],
    },
    "default-matcher": {
        "type": MATCHER,
        "mode": "all",
        "target": ["mail-to-root"],
        "comment": "Route all notifications to mail-to-root",
    },
}


def entities(store: Store, *kinds: str) -> dict[str, Document]:
    """Return everything of some types, by name."""
    found = {**_BUILT_IN, **store.items(COLLECTION)}
    return {name: entity for name, entity in found.items() if not kinds or entity["type"] in kinds}


def require(store: Store, kind: str, name: str) -> Document:
    """Return one thing.

    Raises:
        PveError: There is none of that name and type (404).
    """
    found = entities(store, kind).get(name)
    if found is None:
        word = "matcher" if kind == MATCHER else "endpoint"
        raise PveError(f"{word} '{name}' not found", status=404)
    return found


def check_unique(store: Store, name: str) -> None:
    """Refuse a name that is taken.

    Raises:
        PveError: It is (400).
    """
    if name in entities(store):
        raise PveError(f"Cannot create '{name}', an entity with the same name already exists", status=400)


def check_digest(call: Call) -> None:
    """Refuse a change on the ground of another state of the file.

    Raises:
        PveError: Somebody else changed it (400).
    """
    given = call.params.get("digest")
    if given and given != _digest(call.store):
        text = "detected modified configuration - file changed by other user? Try again."
        raise PveError(text, status=400)


def shown(store: Store, name: str, *, with_digest: bool = False) -> dict[str, Any]:
    """Return one thing as the API shows it, with where it comes from."""
    entity = entities(store)[name]
    built_in = _BUILT_IN.get(name)
    origin = "user-created"
    if built_in is not None:
        origin = "builtin" if dict(entity) == built_in else "modified-builtin"
    row = {"name": name, **{key: value for key, value in entity.items() if key != "type"}, "origin": origin}
    return {**row, "digest": _digest(store)} if with_digest else row


def save(store: Store, name: str, entity: Mapping[str, Any], secrets: Mapping[str, Any] | None) -> None:
    """Write one thing, and what is never shown of it unless that stays as it is; empty lists are not kept."""
    kept = {key: value for key, value in entity.items() if value not in ("", [], None)}
    if kept == _BUILT_IN.get(name):
        store.delete(COLLECTION, name)
    else:
        store.put(COLLECTION, name, kept)
    if secrets is not None:
        store.put(SECRETS, name, secrets)


def secrets_of(store: Store, name: str) -> Document:
    """Return what is never shown of something."""
    return store.get(SECRETS, name) or {}


def remove(store: Store, name: str) -> None:
    """Remove something that nothing refers to; what Proxmox brings along is as it was at first.

    Raises:
        PveError: A matcher refers to it (400).
    """
    users: Sequence[str] = [
        matcher for matcher, entity in entities(store, MATCHER).items() if name in entity.get("target", ())
    ]
    if users and name not in _BUILT_IN:
        raise PveError(f"cannot delete '{name}', referenced by: {', '.join(users)}", status=400)
    store.delete(COLLECTION, name)
    store.delete(SECRETS, name)


def _digest(store: Store) -> str:
    return digest_of(dict(store.items(COLLECTION)))
