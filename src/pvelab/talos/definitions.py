"""The types of COSI resources that the lab's Talos machines have, and how clients show them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from stackyard.talosapi.messages import pb

__all__ = ["DEFINITIONS", "DEFINITION_TYPE", "Definition"]

DEFINITION_TYPE = "ResourceDefinitions.meta.cosi.dev"


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A type of resources.

    Attributes:
        type: Its full name: `Disks.block.talos.dev`.
        namespace: Where its resources are.
        columns: What a table shows: the name of a column and the path of its value.
        aliases: Other names for it, beside those that follow from the full one.
        singular: What one is called.
        sensitive: Whether only an administrator may read it.
    """

    type: str
    namespace: str
    singular: str
    columns: tuple[tuple[str, str], ...] = ()
    aliases: tuple[str, ...] = ()
    sensitive: bool = False

    def list_aliases(self) -> tuple[list[str], list[str]]:
        """Return its short names, and all names."""
        name, _, suffix = self.type.partition(".")
        capitals = "".join(re.findall("[A-Z]", name)).lower()
        short = [*self.aliases, self.singular.lower()]
        if len(capitals) > 1:
            short += [capitals] if capitals.endswith("s") else [capitals, f"{capitals}s"]
        parts = suffix.split(".")
        long = [".".join((name.lower(), *parts[:count])) for count in range(len(parts))]
        return short, [*long, *short]

    def spec(self) -> dict[str, Any]:
        """Return the resource that describes it."""
        short, every = self.list_aliases()
        return {
            "type": self.type,
            "displayType": self.singular,
            "defaultNamespace": self.namespace,
            "aliases": short,
            "allAliases": every,
            "printColumns": [{"name": name, "jsonPath": path} for name, path in self.columns],
            **({"sensitivity": "sensitive"} if self.sensitive else {}),
        }

    def encode(self) -> bytes:
        """Return the same as a message, which clients read it from."""
        short, every = self.list_aliases()
        message = pb.ResourceDefinitionSpec(
            resource_type=self.type,
            display_type=self.singular,
            default_namespace=self.namespace,
            aliases=short,
            all_aliases=every,
            print_columns=[pb.PrintColumn(name=name, json_path=path) for name, path in self.columns],
            sensitivity=int(self.sensitive),
        )
        encoded: bytes = message.SerializeToString()
        return encoded


_LIST = (
    Definition(
        type=DEFINITION_TYPE,
        namespace="meta",
        singular="ResourceDefinition",
        columns=(("Aliases", "{.aliases[:]}"),),
        aliases=("api-resources",),
    ),
    Definition(
        type="Disks.block.talos.dev",
        namespace="runtime",
        singular="Disk",
        columns=(
            *(("Size", "{.pretty_size}"), ("Read Only", "{.readonly}"), ("Transport", "{.transport}")),
            *(("Rotational", "{.rotational}"), ("WWID", "{.wwid}"), ("Model", "{.model}")),
            ("Serial", "{.serial}"),
        ),
    ),
    Definition(
        type="SystemDisks.block.talos.dev",
        namespace="runtime",
        singular="SystemDisk",
        columns=(("Disk", "{.diskID}"),),
    ),
    Definition(
        type="VolumeStatuses.block.talos.dev",
        namespace="runtime",
        singular="VolumeStatus",
        columns=(
            *(("Type", "{.type}"), ("Phase", "{.phase}"), ("Location", "{.location}")),
            ("Size", "{.prettySize}"),
        ),
    ),
    Definition(
        type="LinkStatuses.net.talos.dev",
        namespace="network",
        singular="LinkStatus",
        columns=(
            *(
                ("Alias", "{.alias}"),
                ("Type", "{.type}"),
                ("Kind", "{.kind}"),
                ("Hw Addr", "{.hardwareAddr}"),
            ),
            *(("Oper State", "{.operationalState}"), ("Link State", "{.linkState}")),
        ),
        aliases=("link", "links"),
    ),
    Definition(
        type="AddressStatuses.net.talos.dev",
        namespace="network",
        singular="AddressStatus",
        columns=(("Address", "{.address}"), ("Link", "{.linkName}")),
        aliases=("address", "addresses"),
    ),
    Definition(
        type="HostnameStatuses.net.talos.dev",
        namespace="network",
        singular="HostnameStatus",
        columns=(("Hostname", "{.hostname}"), ("Domainname", "{.domainname}")),
        aliases=("hostname",),
    ),
    Definition(
        type="MachineStatuses.runtime.talos.dev",
        namespace="runtime",
        singular="MachineStatus",
        columns=(("Stage", "{.stage}"), ("Ready", "{.status.ready}")),
    ),
    Definition(
        type="Versions.runtime.talos.dev",
        namespace="runtime",
        singular="Version",
        columns=(("Name", "{.name}"), ("Version", "{.version}")),
    ),
    Definition(
        type="ExtensionStatuses.runtime.talos.dev",
        namespace="runtime",
        singular="ExtensionStatus",
        columns=(("Name", "{.metadata.name}"), ("Version", "{.metadata.version}")),
        aliases=("extensions",),
    ),
    Definition(
        type="SecurityStates.talos.dev",
        namespace="runtime",
        singular="SecurityState",
        columns=(("SecureBoot", "{.secureBoot}"), ("BootedWithUKI", "{.bootedWithUKI}")),
    ),
    Definition(
        type="Diagnostics.runtime.talos.dev",
        namespace="runtime",
        singular="Diagnostic",
        columns=(("Message", "{.message}"),),
    ),
    Definition(
        type="Members.cluster.talos.dev",
        namespace="cluster",
        singular="Member",
        columns=(
            *(("Hostname", "{.hostname}"), ("Machine Type", "{.machineType}")),
            *(("OS", "{.operatingSystem}"), ("Addresses", "{.addresses}")),
        ),
    ),
    Definition(
        type="Services.v1alpha1.talos.dev",
        namespace="runtime",
        singular="Service",
        columns=(("Running", "{.running}"), ("Healthy", "{.healthy}"), ("Health Unknown", "{.unknown}")),
        aliases=("svc",),
    ),
    Definition(
        type="StaticPodStatuses.kubernetes.talos.dev",
        namespace="k8s",
        singular="StaticPodStatus",
        columns=(("Ready", '{.conditions[?(@.type=="Ready")].status}'),),
    ),
    Definition(
        type="KubeletSpecs.kubernetes.talos.dev",
        namespace="k8s",
        singular="KubeletSpec",
        columns=(("Image", "{.image}"),),
    ),
    Definition(
        type="MachineConfigs.config.talos.dev",
        namespace="config",
        singular="MachineConfig",
        sensitive=True,
    ),
)
DEFINITIONS = {one.type: one for one in _LIST}
