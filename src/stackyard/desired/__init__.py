"""What should exist: one frozen model of guests, files, pools and networks that every source resolves to.

Every later step (render, guard, verify, inventory) reads this model and never the source. The model holds
no secret: a `Secret` names one, and its value is passed separately in `Secrets`.

The names below are imported when they are used: a command that needs few of them starts sooner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stackyard.desired.check import Problem, problems
    from stackyard.desired.container import (
        Console,
        Container,
        ContainerMemory,
        Features,
        IdMap,
        MountPoint,
        RootDisk,
    )
    from stackyard.desired.credentials import ApiToken, Credentials, TokenGrant, UserPassword
    from stackyard.desired.disks import Cdrom, Disk, EfiDisk, SpeedLimits, Tpm
    from stackyard.desired.files import DeclaredFile, Download, File, Snippet, Upload
    from stackyard.desired.firewall import (
        Firewall,
        FirewallAlias,
        FirewallOptions,
        FirewallRule,
        FirewallSet,
        FirewallSetEntry,
    )
    from stackyard.desired.guest import (
        Agent,
        Clone,
        CloudInit,
        Dns,
        GuestBase,
        HostKey,
        Inline,
        Startup,
        User,
        Verify,
        WrittenFile,
    )
    from stackyard.desired.ha import Affinity, HighAvailability
    from stackyard.desired.hardware import (
        Audio,
        Cpu,
        Device,
        Display,
        Memory,
        NumaNode,
        PciDevice,
        RandomNumbers,
        Serial,
        UsbDevice,
        Watchdog,
    )
    from stackyard.desired.model import Desired, Guest, Pool
    from stackyard.desired.network import (
        Bridge,
        DhcpRange,
        SimpleZone,
        Subnet,
        Vlan,
        VlanZone,
        Vnet,
        VxlanZone,
        Zone,
    )
    from stackyard.desired.nic import ContainerNic, Nic
    from stackyard.desired.objects import ClusterObject, ObjectKey
    from stackyard.desired.replication import Replication
    from stackyard.desired.secret import Secret, Secrets, Text
    from stackyard.desired.values import Value
    from stackyard.desired.vm import Vm

__all__ = [
    "Affinity",
    "Agent",
    "ApiToken",
    "Audio",
    "Bridge",
    "Cdrom",
    "Clone",
    "CloudInit",
    "ClusterObject",
    "Console",
    "Container",
    "ContainerMemory",
    "ContainerNic",
    "Cpu",
    "Credentials",
    "DeclaredFile",
    "Desired",
    "Device",
    "DhcpRange",
    "Disk",
    "Display",
    "Dns",
    "Download",
    "EfiDisk",
    "Features",
    "File",
    "Firewall",
    "FirewallAlias",
    "FirewallOptions",
    "FirewallRule",
    "FirewallSet",
    "FirewallSetEntry",
    "Guest",
    "GuestBase",
    "HighAvailability",
    "HostKey",
    "IdMap",
    "Inline",
    "Memory",
    "MountPoint",
    "Nic",
    "NumaNode",
    "ObjectKey",
    "PciDevice",
    "Pool",
    "Problem",
    "RandomNumbers",
    "Replication",
    "RootDisk",
    "Secret",
    "Secrets",
    "Serial",
    "SimpleZone",
    "Snippet",
    "SpeedLimits",
    "Startup",
    "Subnet",
    "Text",
    "TokenGrant",
    "Tpm",
    "Upload",
    "UsbDevice",
    "User",
    "UserPassword",
    "Value",
    "Verify",
    "Vlan",
    "VlanZone",
    "Vm",
    "Vnet",
    "VxlanZone",
    "Watchdog",
    "WrittenFile",
    "Zone",
    "problems",
]

_NAMES = {
    "check": "Problem problems",
    "container": "Console Container ContainerMemory Features IdMap MountPoint RootDisk",
    "credentials": "ApiToken Credentials TokenGrant UserPassword",
    "disks": "Cdrom Disk EfiDisk SpeedLimits Tpm",
    "files": "DeclaredFile Download File Snippet Upload",
    "firewall": "Firewall FirewallAlias FirewallOptions FirewallRule FirewallSet FirewallSetEntry",
    "guest": "Agent Clone CloudInit Dns GuestBase HostKey Inline Startup User Verify WrittenFile",
    "ha": "Affinity HighAvailability",
    "hardware": "Audio Cpu Device Display Memory NumaNode PciDevice RandomNumbers Serial UsbDevice Watchdog",
    "model": "Desired Guest Pool",
    "network": "Bridge DhcpRange SimpleZone Subnet Vlan VlanZone Vnet VxlanZone Zone",
    "nic": "ContainerNic Nic",
    "objects": "ClusterObject ObjectKey",
    "replication": "Replication",
    "secret": "Secret Secrets Text",
    "values": "Value",
    "vm": "Vm",
}
_PLACES = {name: place for place, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    import importlib  # lazy: most of the package is used without these names

    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name))
