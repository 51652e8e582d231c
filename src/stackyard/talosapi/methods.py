"""The methods of the Talos API: path, messages, what is a stream, and which roles may call each."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.talosapi.messages import pb

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MACHINE_METHODS_WITHOUT_MESSAGES", "METHODS", "PORT", "Method", "Role"]

PORT = 50000


class Role(enum.StrEnum):
    """What a client certificate lets its owner do; it is an organization (O) of the subject."""

    ADMIN = "os:admin"
    OPERATOR = "os:operator"
    READER = "os:reader"
    ETCD_BACKUP = "os:etcd:backup"


_ADMIN = frozenset((Role.ADMIN,))
_OPERATOR = frozenset((Role.ADMIN, Role.OPERATOR))
_READER = frozenset((Role.ADMIN, Role.OPERATOR, Role.READER))
_BACKUP = frozenset((Role.ADMIN, Role.OPERATOR, Role.ETCD_BACKUP))


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A method of a service.

    Attributes:
        service: The full name of its service: `machine.MachineService`.
        name: Its name: `Version`.
        request: The class of the message that is sent.
        response: The class of the message that is answered.
        roles: Who may call it.
        streams_in: Whether the client sends a stream.
        streams_out: Whether the server answers with a stream.
    """

    service: str
    name: str
    request: Any
    response: Any
    roles: frozenset[Role]
    streams_in: bool = False
    streams_out: bool = False

    @property
    def path(self) -> str:
        """What HTTP/2 calls it by: `/machine.MachineService/Version`."""
        return f"/{self.service}/{self.name}"


# Request and response where they are not `XRequest` and `XResponse`; `<` before a stream of the client's,
# `>` before one of the server's.
_TABLE = {
    "machine.MachineService": {
        "ApplyConfiguration": ("", "", _ADMIN),
        "Bootstrap": ("", "", _ADMIN),
        "EtcdForfeitLeadership": ("", "", _ADMIN),
        "EtcdLeaveCluster": ("", "", _ADMIN),
        "EtcdMemberList": ("", "", _READER),
        "EtcdRecover": ("<Data", "", _ADMIN),
        "EtcdRemoveMemberByID": ("", "", _ADMIN),
        "EtcdSnapshot": ("", ">Data", _BACKUP),
        "EtcdStatus": ("Empty", "", _READER),
        "Events": ("", ">Event", _READER),
        "GenerateClientConfiguration": ("", "", _ADMIN),
        "Kubeconfig": ("Empty", ">Data", _ADMIN),
        "Memory": ("Empty", "", _READER),
        "Read": ("", ">Data", _ADMIN),
        "Reboot": ("", "", _OPERATOR),
        "Reset": ("", "", _ADMIN),
        "ServiceList": ("Empty", "", _READER),
        "Shutdown": ("", "", _OPERATOR),
        "Upgrade": ("", "", _ADMIN),
        "Version": ("Empty", "", _READER),
    },
    "storage.StorageService": {
        "BlockDeviceWipe": ("", "", _ADMIN),
        "Disks": ("Empty", "", _READER),
    },
    "cluster.ClusterService": {
        "HealthCheck": ("", ">HealthCheckProgress", _READER),
    },
    "cosi.resource.State": {
        "Get": ("", "", _READER),
        "List": ("", ">ListResponse", _READER),
        "Watch": ("", ">WatchResponse", _READER),
        # Writing is refused to everybody, so that no message of theirs matters.
        "Create": ("Empty", "Empty", _READER),
        "Update": ("Empty", "Empty", _READER),
        "Destroy": ("Empty", "Empty", _READER),
    },
}

# The rest of Talos 1.12, of which only the names are known here: a machine in maintenance mode names them.
MACHINE_METHODS_WITHOUT_MESSAGES = tuple(
    (
        "Containers Copy CPUFreqStats CPUInfo DiskStats DiskUsage Dmesg EtcdAlarmDisarm EtcdAlarmList"
        " EtcdDefragment EtcdDowngradeCancel EtcdDowngradeEnable EtcdDowngradeValidate Hostname"
        " ImageList ImagePull List LoadAvg Logs LogsContainers MetaDelete MetaWrite Mounts Netstat"
        " NetworkDeviceStats PacketCapture Processes Restart Rollback ServiceRestart ServiceStart"
        " ServiceStop Stats SystemStat"
    ).split()
)


def _make(service: str, name: str, row: tuple[str, str, frozenset[Role]]) -> Method:
    sent, answered, roles = row
    return Method(
        service=service,
        name=name,
        request=getattr(pb, sent.lstrip("<") or f"{name}Request"),
        response=getattr(pb, answered.lstrip(">") or f"{name}Response"),
        roles=roles,
        streams_in=sent.startswith("<"),
        streams_out=answered.startswith(">"),
    )


METHODS: Mapping[str, Method] = {
    made.path: made
    for service, rows in _TABLE.items()
    for name, row in rows.items()
    for made in (_make(service, name, row),)
}
