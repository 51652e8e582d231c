"""`envs/*.yaml`: guests that belong together, and the networks made for them."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from stackyard.desired.values import Many, VmId
from stackyard.sources.site.entities.guests import Entry
from stackyard.sources.site.entities.images import FileEntry, PoolEntry
from stackyard.sources.site.entities.networks import Network
from stackyard.sources.site.entities.values import Entity, Name, Named

__all__ = ["EnvFile"]

# The type checker cannot know a model that is made at run time.
AnyEntry: Any = Entry


def _nothing_as_none(value: Any) -> Any:
    """Take a key with nothing after it for a list without guests, as people write it."""
    return [] if value is None else value


class EnvFile(Entity):
    """An env."""

    description: str | None = None
    posture: Name = "dev"
    # Where it runs unless the command says another: nodes/NAME.yaml.
    node: Name | None = None
    # The first guest gets this id, the next one more; Proxmox assigns ids when absent.
    vmid_base: VmId | None = None
    vms: Annotated[Many[AnyEntry], BeforeValidator(_nothing_as_none)] = ()
    networks: Named[Network] = Field(default_factory=dict)
    files: Named[FileEntry] = Field(default_factory=dict)
    pools: Named[PoolEntry | None] = Field(default_factory=dict)
