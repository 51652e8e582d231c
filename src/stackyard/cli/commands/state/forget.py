"""`stackyard state forget`: resources that a state no longer has, and that stay as they are."""

from __future__ import annotations

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.state.recover import lock_state
from stackyard.cli.commands.state.store import StoreChoice, current_actor, open_service, store_options
from stackyard.cli.completions import complete_states
from stackyard.cli.result import Result

__all__ = ["forget"]


@click.command("forget", cls=Command)
@click.argument("name", shell_complete=complete_states)
@click.argument("addresses", nargs=-1, required=True, metavar="ADDRESS...")
@store_options
def forget(name: str, addresses: tuple[str, ...], choice: StoreChoice) -> Result:
    """Remove resources from a state without destroying them.

    Like `tofu state rm`: for a guest that you know was deleted, or that another state contains too. Earlier
    versions stay: `stackyard state rollback` undoes it.

    \b
    stackyard state show env/dev/pve1
    stackyard state forget env/dev/pve1 proxmox_virtual_environment_vm.web
    """  # noqa: D301 - click reads the control character
    from stackyard.path.known_state import StateEdit, read_known_state  # lazy: only when this verb runs
    from stackyard.state.inside import EncryptedStateError  # lazy: as above

    with open_service(choice) as service, lock_state(service, name) as lock_id:
        known = read_known_state(service, name)
        if not known.is_readable:
            raise EncryptedStateError(f"{name} is encrypted by the engine.")
        unknown = [address for address in addresses if address not in known.instances]
        if unknown:
            has = ", ".join(sorted(known.instances)) or "nothing"
            raise UsageError(f"{name} has no {', '.join(unknown)}; it has {has}.")
        content = known.edit(StateEdit(forget=frozenset(addresses)))
        if content is not None:
            service.contents.write(name, content, current_actor(), lock_id=lock_id)
    text = f"{name} no longer has {', '.join(addresses)}; nothing else was changed."
    return Result(
        document={"name": name, "forgotten": list(addresses)}, show=lambda writer: writer.line(text)
    )
