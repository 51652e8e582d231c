"""The whole of what should be there."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated

from pydantic import StringConstraints

from stackyard.desired.container import Container
from stackyard.desired.credentials import Credentials
from stackyard.desired.files import AnyFile
from stackyard.desired.ha import Affinity
from stackyard.desired.network import Bridge, Subnet, Vlan, Vnet, Zone
from stackyard.desired.objects import ClusterObject
from stackyard.desired.values import Many, Value
from stackyard.desired.vm import Vm

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Desired", "Guest", "Pool"]

Guest = Vm | Container


class Pool(Value):
    """A pool of guests and storages."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+){0,2}$")]
    comment: str | None = None


class Desired(Value):
    """Guests, files, pools, networks and other objects, and nothing about where they were written down."""

    vms: Many[Vm] = ()
    containers: Many[Container] = ()
    files: Many[AnyFile] = ()
    pools: Many[Pool] = ()
    bridges: Many[Bridge] = ()
    vlans: Many[Vlan] = ()
    zones: Many[Zone] = ()
    vnets: Many[Vnet] = ()
    subnets: Many[Subnet] = ()
    affinities: Many[Affinity] = ()
    objects: Many[ClusterObject] = ()
    credentials: Credentials = Credentials()

    @property
    def guests(self) -> Iterator[Guest]:
        """All guests, the virtual machines first."""
        yield from self.vms
        yield from self.containers

    @property
    def is_empty(self) -> bool:
        """Whether nothing should be there, which no plan is ever made of."""
        return self == Desired()

    def to_json(self) -> bytes:
        """Return the model as JSON, without what is as by default."""
        return self.model_dump_json(exclude_defaults=True).encode()

    @classmethod
    def from_json(cls, document: bytes | str) -> Desired:
        """Read what `to_json` wrote.

        Raises:
            pydantic.ValidationError: It is no such document; the error names every place.
        """
        return cls.model_validate_json(document)

    def digest(self) -> str:
        """Return a fingerprint of everything in the model, defaults included."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()
