"""`manifests/*.yaml`: guests, and guests inside guests, that come and go together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from stackyard.desired import container
from stackyard.desired.values import GuestName, Many, VmId
from stackyard.desired.vm import Vm
from stackyard.sources.site.entities.guests import NOT_IN_FILES, SHORT_FORMS, EntryBase, ImageName
from stackyard.sources.site.entities.partial import partial
from stackyard.sources.site.entities.values import Entity, Line, Name

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Execution", "Level", "Manifest", "ManifestV1", "ManifestV2", "Mode", "Settings", "manifest_model"]

Mode = Literal["push", "pull"]
MOST_COPIES = 1000


def _some(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    # As a limit on the length, it would also count parts that have a problem of their own.
    if not parts:
        raise ValueError("there has to be at least one")
    return parts


class Execution(Entity):
    """Who configures a guest: the operator (`push`), or the guest itself (`pull`)."""

    default_mode: Mode = "push"


class NodeExecution(Entity):
    """Who configures this guest, where it differs from the others."""

    mode: Mode | None = None


class Settings(Entity):
    """How a manifest is run."""

    # Whether a guest counts as there only once SSH answers.
    verify_ssh: bool = True
    # Whether `test` removes what it made after a failure too.
    cleanup_on_failure: bool = True
    # Seconds that every wait is given on top.
    timeout_buffer: Annotated[int, Field(ge=0, le=86_400)] = 60
    on_error: Literal["stop", "rollback", "continue"] = "stop"


class Level(Entity):
    """A level of a manifest of the first version: one guest, and in it the next level."""

    name: GuestName
    vm_preset: Name | None = None
    template: Name | None = None
    env: Name | None = None
    vmid: VmId | None = None
    vmid_offset: int | None = None
    image: ImageName | None = None
    # Gibibytes, where it is not what the preset says; homestak passes over it.
    disk: Annotated[int, Field(ge=1)] | None = None
    post_scenario: Name | None = None
    post_scenario_args: Many[Line] = ()

    @model_validator(mode="after")
    def _has_one_source(self) -> Level:
        said = [key for key in ("vm_preset", "template", "env") if getattr(self, key) is not None]
        if len(said) != 1:
            raise ValueError("a level says one of `vm_preset`, `template` and `env`")
        return self


class ManifestV1(Entity):
    """A manifest of levels, each inside the one before."""

    schema_version: Annotated[int, Field(ge=1, le=1)] = 1
    name: Name
    description: str | None = None
    levels: Annotated[Many[Level], AfterValidator(_some), Field(json_schema_extra={"minItems": 1})]
    settings: Settings = Settings()


class _NodeBase(EntryBase):
    """What a node of a manifest must say."""

    name: GuestName
    type: Literal["vm", "ct", "pve"]


Node: Any = partial(
    "Node",
    Vm,
    container.Container,
    doc="A guest of a manifest; one of type `pve` is a Proxmox VE that other guests run in.",
    without=(*NOT_IN_FILES, "type"),
    replaced={
        **{key: kind for key, kind in SHORT_FORMS.items() if key != "type"},
        "template": Name,
        # The node that it runs inside of; none is the host.
        "parent": GuestName,
        # The host that it runs on, where a manifest has several.
        "host": Name,
        # Others beside it that have to be there first.
        "depends_on": Many[GuestName],
        # How many of it: NAME-1, NAME-2 and so on, with ids that follow each other.
        "count": Annotated[int, Field(ge=1, le=MOST_COPIES)],
        "execution": NodeExecution,
    },
    base=_NodeBase,
)


class ManifestV2(Entity):
    """A manifest of nodes with parents."""

    schema_version: Annotated[int, Field(ge=2, le=2)]
    name: Name
    description: str | None = None
    # For the reader: the parents of guests say which is inside of which.
    pattern: Literal["flat", "tiered"] = "flat"
    posture: Name = "dev"
    execution: Execution = Execution()
    nodes: Annotated[Many[Node], AfterValidator(_some), Field(json_schema_extra={"minItems": 1})]
    settings: Settings = Settings()


Manifest = ManifestV1 | ManifestV2


def manifest_model(data: Mapping[str, object]) -> type[Manifest]:
    """Return which version of the format a file is in."""
    is_first = data.get("schema_version", 1) == 1 and "nodes" not in data
    return ManifestV1 if is_first else ManifestV2
