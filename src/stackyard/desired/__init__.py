"""What should exist: one frozen model of guests, files, pools and networks that every source resolves to.

Every later step (render, guard, verify, inventory) reads this model and never the source. The model holds
no secret: a `Secret` names one, and its value is passed separately in `Secrets`.
"""

from __future__ import annotations

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
