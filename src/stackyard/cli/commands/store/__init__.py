"""`stackyard store`: where what runs leave is kept, and the key of the site."""

from __future__ import annotations

from stackyard.cli.command import LazyCommand, group

__all__ = ["store"]

_LATER = {
    "check": LazyCommand(
        module="stackyard.cli.commands.store.check",
        name="check",
        help="Prove that a store can be read and written, and honours conditional writes.",
    ),
    "key": LazyCommand(
        module="stackyard.cli.commands.store.key",
        name="key",
        help="Manage the key of the site, which opens saved plans and seals the private keys in the store.",
    ),
    "move": LazyCommand(
        module="stackyard.cli.commands.store.move",
        name="move",
        help="Move everything from the store FROM to the store TO: addresses, or folders.",
    ),
    "show": LazyCommand(
        module="stackyard.cli.commands.store.show",
        name="show",
        help="Show which store the site uses, what chose it, what is in it, and whether this"
        " machine has the key.",
    ),
}


@group("store", later=_LATER)
def store() -> None:
    """Manage the store of the site: states, journals, run records, saved plans, inventories and sealed keys.

    One word chooses it: `store` in site.yaml or in the repository's stackyard.yaml, or STACKYARD_STORE.
    Without it, the store is a file in the folder .stackyard of the site, for one machine.

    \b
    store: s3://bucket/prefix?endpoint=https://host:port   AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
    store: postgresql://user@host/database?schema=NAME     PGPASSWORD or ~/.pgpass
    store: https://host:8009                               a state service, STACKYARD_STORE_TOKEN

    \b
    stackyard store show                      show which store is used, and what is in it
    stackyard store check                     prove that it can be relied on
    stackyard store move FROM TO              move everything to another store
    stackyard store key show                  print the key of the site, for another machine
    """  # noqa: D301 - click reads the control character
