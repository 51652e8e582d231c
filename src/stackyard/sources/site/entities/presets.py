"""`vms/presets/*.yaml` and `presets/*.yaml`: sizes of guests."""

from typing import Annotated

from pydantic import Field

from stackyard.sources.site.entities.values import Entity

__all__ = ["Cores", "DiskGib", "MemoryMib", "PresetFile"]

Cores = Annotated[int, Field(ge=1, le=1024)]
MemoryMib = Annotated[int, Field(ge=16, le=268_435_456)]
DiskGib = Annotated[int, Field(ge=1, le=1_048_576)]


class PresetFile(Entity):
    """A size: cores, memory in MiB, disk in GiB."""

    cores: Cores
    memory: MemoryMib
    disk: DiskGib
