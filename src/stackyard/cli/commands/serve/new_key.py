"""`stackyard serve new-key`: another private key for the controller."""

from __future__ import annotations

import contextlib

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.store.open_site import site_option
from stackyard.cli.result import Result

__all__ = ["new_key"]


@click.command("new-key", cls=Command)
@site_option
def new_key(site: str | None) -> Result:
    """Forget the private key of the controller; its next start creates another one.

    Guests that booted before pin the old key: they refuse the controller from then on. Use this if the key
    may be known to others.
    """
    from stackyard.controller.identity import forget_certificate  # lazy: cryptography, only for this verb
    from stackyard.sources.site import ConfigResolver  # lazy: as above

    store = ConfigResolver(site).site.store
    with contextlib.closing(store.open()) as objects:
        was_there = forget_certificate(objects)
    text = "The next start of the controller creates a new key." if was_there else "There was no key yet."
    return Result(document={"was_there": was_there}, show=lambda writer: writer.line(text))
