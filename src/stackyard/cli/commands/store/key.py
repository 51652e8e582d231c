"""`stackyard store key`: the key of the site."""

from __future__ import annotations

import contextlib
from typing import Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import group
from stackyard.cli.commands.store.open_site import site_option, store_here
from stackyard.cli.result import Result

__all__ = ["key"]


@group("key")
def key() -> None:
    """Manage the site key, which encrypts saved plans and the private keys in the store.

    The key is never in the store. stackyard uses the first of these that exists: the file in
    STACKYARD_SITE_KEY_FILE, `site_key` in the site's secrets, and the file that the first run created. During
    a rotation, give the new key and the old one, separated by a comma: the first key encrypts, all of them
    decrypt.

    \b
    stackyard store key show                    print the key, for another machine
    stackyard store key new                     print a new key
    stackyard store key reseal                  encrypt the private keys again with the new key
    """  # noqa: D301 - click reads the control character


@key.command("show")
@site_option
def show(site: str | None) -> Result:
    """Print the site key. It decrypts saved plans and the private keys in the store, so keep it secret."""
    from stackyard.sources.store.keys import SiteKeyMissingError, read_keys  # lazy: cryptography

    found = read_keys(store_here(site))
    if found is None:
        raise SiteKeyMissingError("This machine does not have the site key.")
    text = found.text()
    document = {"key": text, "ids": list(found.ids), "where": found.where}
    return Result(document=document, show=lambda writer: writer.line(text))


@key.command("new")
def new() -> Result:
    """Print a new key, and change nothing.

    To rotate the key, replace it on every machine by the new and the old key: `NEW,OLD`. Then run `stackyard
    store key reseal`, and remove the old key.
    """
    from stackyard.clients.objects.sealed import MasterKey, make_master_key  # lazy: cryptography

    text = make_master_key()
    document = {"key": text, "id": MasterKey.from_text(text).id}
    return Result(document=document, show=lambda writer: writer.line(text))


@key.command("reseal")
@click.option("--forget-old", is_flag=True, help="Refuse machines that have only an older key from now on.")
@site_option
def reseal(forget_old: bool, site: str | None) -> Result:
    """Encrypt every private key in the store again, with the first of the site's keys.

    Runs can use the store meanwhile. Use --forget-old once every machine has the new key: a machine that has
    only the old one would encrypt with that. Saved plans are not encrypted again: apply or discard those of
    the old key before you remove that key.
    """
    from stackyard.sources.store.keys import site_keys  # lazy: cryptography
    from stackyard.sources.store.sealed import reseal_all  # lazy: as above

    store = store_here(site)
    with contextlib.closing(store.open()) as objects:
        keys = site_keys(store, objects, create=False)
        if len(keys.ids) < 2:
            raise UsageError(
                "The site has only one key. A rotation needs the new key and the old one: `NEW,OLD`.",
                remedy="`stackyard store key new` prints a new key. Put it before the old one.",
            )
        count = reseal_all(store, objects, forget_old=forget_old)
    document: dict[str, Any] = {"key": keys.ids[0], "resealed": count}
    text = f"Encrypted {count} objects with the key {keys.ids[0]}."
    return Result(document=document, show=lambda writer: writer.line(text))
