"""What a run works on: the rendered configuration, its secrets, and the keys of its plans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.path.own_code import add_own_code, seal_own_code
from stackyard.path.planfile import plan_keys
from stackyard.path.provider_environment import provider_block
from stackyard.path.workspace import Workspace, input_digest
from stackyard.render import Rendered, render
from stackyard.sources.store.keys import site_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.clients.objects import Objects
    from stackyard.desired import Desired
    from stackyard.path.planfile import PlanKey
    from stackyard.path.settings import RunSettings
    from stackyard.path.target import Resolved

__all__ = ["RunInput", "prepare", "render_target", "secret_values"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInput:
    """What is known before anything is started.

    Attributes:
        workspace: Where the engine works.
        rendered: The configuration of the target as the input says it.
        keys: The keys of saved plans; the first encrypts.
        values: The secrets of the configuration by the names of their variables.
        digest: The fingerprint of what should be there.
    """

    workspace: Workspace
    rendered: Rendered
    keys: tuple[PlanKey, ...]
    values: Mapping[str, str]
    digest: str

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown."""
        return (*self.values.values(), *(key.secret.hex() for key in self.keys))


def secret_values(resolved: Resolved, rendered: Rendered) -> dict[str, str]:
    """Return the secrets of a configuration by the names of their variables."""
    return {variable.name: resolved.secrets.reveal(variable.secret) for variable in rendered.variables}


def prepare(resolved: Resolved, settings: RunSettings, objects: Objects, emit: events.Emit) -> RunInput:
    """Render the configuration into the folder of the target, and find the key of the site.

    Args:
        resolved: The target.
        settings: How to run.
        objects: The store, open.
        emit: Told of a key that was made.

    Raises:
        SiteKeyMissingError: The store was used with a key that is not here.
        OtherSiteError: The store was used with other keys than those of this site.
        FileError: The folder cannot be written, or the key not read.
    """
    rendered = seal_own_code(render_target(resolved, resolved.desired), resolved.code)
    values = secret_values(resolved, rendered)
    workspace = Workspace.of(settings.base, resolved.target)
    workspace.write(rendered)
    found = site_keys(settings.store, objects)
    if found.is_new and settings.store.is_shared:
        text = f"A key for this site was made: {found.path}. Other machines need it: stackyard store key show"
        emit(events.LogLine(level=events.LogLevel.WARNING, source="store", text=text))
    keys = plan_keys(found.ring)
    digest = input_digest(rendered, values, keys[0])
    return RunInput(workspace=workspace, rendered=rendered, keys=keys, values=values, digest=digest)


def render_target(resolved: Resolved, desired: Desired) -> Rendered:
    """Return the configuration of a target for a model."""
    rendered = render(desired, provider_block(resolved), scope=resolved.target.state_name)
    return add_own_code(rendered, resolved.code, desired)
