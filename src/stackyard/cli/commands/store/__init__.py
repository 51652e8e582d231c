"""`stackyard store`: where what runs leave is kept, and the key of the site."""

from __future__ import annotations

from stackyard.cli.command import LazyCommand, group

__all__ = ["store"]

_LATER = {
    "check": LazyCommand(
        module="stackyard.cli.commands.store.check",
        name="check",
        help="Check that a store can be read and written, and supports conditional writes.",
    ),
    "key": LazyCommand(
        module="stackyard.cli.commands.store.key",
        name="key",
        help="Manage the site key, which encrypts saved plans and the private keys in the store.",
    ),
    "move": LazyCommand(
        module="stackyard.cli.commands.store.move",
        name="move",
        help="Move everything from one store to another.",
    ),
    "show": LazyCommand(
        module="stackyard.cli.commands.store.show",
        name="show",
        help="Show which store the site uses, what it holds, and whether this machine has the site key.",
    ),
}


@group("store", later=_LATER)
def store() -> None:
    """Manage the store of the site: states, run records, saved plans, inventories and private keys.

    The setting is `store` in site.yaml or in stackyard.yaml at the top of the repository. The variable
    STACKYARD_STORE overrides both. The default is a file in the folder .stackyard of the site, for one
    machine.

    \b
    store: s3://bucket/prefix?endpoint=https://host:port   AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
    store: postgresql://user@host/database?schema=NAME     PGPASSWORD or ~/.pgpass
    store: https://host:8009                               a state service, STACKYARD_STORE_TOKEN

    \b
    stackyard store show                      show which store is used, and what it holds
    stackyard store check                     check that it can be used safely
    stackyard store move FROM TO              move everything to another store
    stackyard store key show                  print the site key, for another machine
    """  # noqa: D301 - click reads the control character
