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
    """Manage the key of the site, which opens saved plans and seals the private keys in the store.

    It is never in the store. It is looked for in the file that STACKYARD_SITE_KEY_FILE names, in the site's
    secrets (`site_key`), and in the file that the first run made. During a rotation, give the new key and the
    old one, separated by a comma: the first seals, all open.

    \b
    stackyard store key show                    print it, to give it to another machine
    stackyard store key new                     print a new one
    stackyard store key reseal                  seal everything with the first key of the two
    """  # noqa: D301 - click reads the control character


@key.command("show")
@site_option
def show(site: str | None) -> Result:
    """Print the key of the site. Whoever has it can open saved plans and the private keys in the store."""
    from stackyard.sources.store.keys import SiteKeyMissingError, read_keys  # lazy: cryptography

    found = read_keys(store_here(site))
    if found is None:
        raise SiteKeyMissingError("This machine has no key of the site.")
    text = found.text()
    document = {"key": text, "ids": list(found.ids), "where": found.where}
    return Result(document=document, show=lambda writer: writer.line(text))


@key.command("new")
def new() -> Result:
    """Print a new key. Nothing is changed.

    To rotate: put `NEW,OLD` where the key is, on every machine; run `stackyard store key reseal`; then leave
    the old one out.
    """
    from stackyard.clients.objects.sealed import MasterKey, make_master_key  # lazy: cryptography

    text = make_master_key()
    document = {"key": text, "id": MasterKey.from_text(text).id}
    return Result(document=document, show=lambda writer: writer.line(text))


@key.command("reseal")
@click.option("--forget-old", is_flag=True, help="Refuse machines that have only an older key from now on.")
@site_option
def reseal(forget_old: bool, site: str | None) -> Result:
    """Seal every private key in the store with the first key of the site, while the store is in use.

    Once every machine has the new key, run it again with --forget-old: a machine that has only the old key
    would go on to seal with that one. Saved plans of an older key stay as they are: apply or discard them
    before you leave the old key out.
    """
    from stackyard.sources.store.keys import site_keys  # lazy: cryptography
    from stackyard.sources.store.sealed import reseal_all  # lazy: as above

    store = store_here(site)
    with contextlib.closing(store.open()) as objects:
        keys = site_keys(store, objects)
        if len(keys.ids) < 2:
            raise UsageError(
                "The site has one key: there is nothing to rotate. Give the new one and the old one."
            )
        count = reseal_all(store, objects, forget_old=forget_old)
    document: dict[str, Any] = {"key": keys.ids[0], "resealed": count}
    text = f"{count} objects are now sealed with the key {keys.ids[0]}."
    return Result(document=document, show=lambda writer: writer.line(text))
