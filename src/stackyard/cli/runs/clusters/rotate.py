"""The run of `stackyard infra rotate-credentials`."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from stackyard.base.backoff import Backoff
from stackyard.cli.commands.state.store import current_actor, open_service
from stackyard.cli.result import Result
from stackyard.cli.runs.clusters.infra import choose_cluster
from stackyard.cli.runs.stacks.chosen import StackCommand
from stackyard.engine.failures import BackendLoginError
from stackyard.path.clusters.credentials import read_engine_secrets
from stackyard.path.clusters.keys import make_keyring
from stackyard.path.clusters.rotate import RotationError, add_login, end_logins, write_login
from stackyard.path.stacks.backend import BackendKind
from stackyard.sources.cluster.kind import CLUSTER

if TYPE_CHECKING:
    from stackyard.cli.commands.state.store import StoreChoice
    from stackyard.cli.session import Session

__all__ = ["run_rotation"]

_PATIENCE_S = 20.0
_SETTINGS = {"plan_file": None, "engine_words": ()}


async def run_rotation(session: Session, values: dict[str, Any], choice: StoreChoice) -> Result:
    """Rotate the login of a cluster to its state service.

    Raises:
        RotationError: The state is not behind a service, or the store does not know its login.
    """
    name, folder = choose_cluster(values["cluster"])
    target = f"{CLUSTER}:{name}"
    options = {**values, **_SETTINGS, "target": target}
    command = StackCommand(session, options)
    before = await command.choose(target)
    if before.resolved.backend.kind is BackendKind.STORE:
        raise RotationError(
            f"{target} keeps its state in the store of stackyard, and has no login to a state service.",
            remedy="Set `tfstate_address` in the input of the cluster, where a state service keeps it.",
        )
    keyring = make_keyring(folder)
    with open_service(choice) as states:
        login = add_login(states, read_engine_secrets(folder / "infrastructure", keyring), current_actor())
        write_login(folder, login, keyring)
        await _prove(command, target)
        end_logins(states, login, current_actor(), values["overlap"])
    ends = "end" if values["overlap"] else "ended"
    return Result(
        document={"target": target, "principal": login.name, "former": list(login.former)},
        show=lambda writer: writer.line(
            f"{target} logs in as {login.name} now; {', '.join(login.former)} {ends}.", style="green"
        ),
    )


async def _prove(command: StackCommand, target: str) -> None:
    """Read the state, with the engine and the files as every later run has them.

    Raises:
        BackendLoginError: The service does not know the new login, however long it is given.
    """
    ends_s = time.monotonic() + _PATIENCE_S
    for pause_s in Backoff(0.2, 2.0):
        try:
            async with (await command.choose(target)).run("rotate", is_recorded=False) as run:
                await run.read_state()
                return
        except BackendLoginError:
            # A service looks for new principals every other second.
            if time.monotonic() > ends_s:
                raise
        await asyncio.sleep(pause_s)
