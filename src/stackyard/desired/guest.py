"""What virtual machines and containers have in common besides their hardware."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from stackyard.desired.files import File
from stackyard.desired.firewall import Firewall
from stackyard.desired.ha import HighAvailability
from stackyard.desired.replication import Replications
from stackyard.desired.secret import Secret, Text
from stackyard.desired.values import (
    DnsName,
    GuestName,
    HostAddress,
    Key,
    Line,
    Many,
    Seconds,
    Tags,
    Value,
    VmId,
)

__all__ = [
    "Agent",
    "Clone",
    "CloudInit",
    "Dns",
    "GuestBase",
    "HostKey",
    "Inline",
    "Startup",
    "User",
    "Verify",
    "WrittenFile",
]

UserName = Annotated[str, StringConstraints(pattern=r"^[a-z_][a-z0-9_.-]*\$?$", max_length=32)]
DriveInterface = Annotated[str, StringConstraints(pattern=r"^(ide[0-3]|sata[0-5]|scsi([0-9]|[12][0-9]|30))$")]


class Startup(Value):
    """When a guest starts and stops in relation to the others on its node."""

    order: Annotated[int, Field(ge=0)] | None = None
    up_delay_s: Seconds | None = None
    down_delay_s: Seconds | None = None


class Dns(Value):
    """How a guest finds names."""

    servers: Many[HostAddress] = ()
    domain: DnsName | None = None


class User(Value):
    """A user that a guest gets when it first boots; one without a name is the image's own."""

    name: UserName | None = None
    keys: Many[Line] = ()
    # The value is a crypt hash, as in /etc/shadow.
    password: Secret | None = None
    # False: no sudo; True: with a password; `nopasswd`: without.
    sudo: bool | Literal["nopasswd"] = False
    groups: Many[Line] = ()
    shell: Line | None = None

    @model_validator(mode="after")
    def _check_image_user(self) -> Self:
        if self.name is None and (self.sudo or self.groups or self.shell):
            raise ValueError("the image's own user has keys and a password alone: give it a `name`")
        return self


class WrittenFile(Value):
    """A file that cloud-init writes in the guest."""

    path: Annotated[str, StringConstraints(pattern=r"^/\S+$")]
    content: Text
    mode: Annotated[str, StringConstraints(pattern=r"^0[0-7]{3}$")] = "0644"
    owner: Line = "root:root"


class Inline(Value):
    """The content of a file, in the model itself."""

    text: Text


class HostKey(Value):
    """The ed25519 key pair by which a guest shows over SSH that it is itself."""

    # One line, as in /etc/ssh/ssh_host_ed25519_key.pub.
    public: Line
    # In the form of OpenSSH.
    private: Secret


class CloudInit(Value):
    """What cloud-init does when a guest first boots.

    The first user goes through Proxmox's own cloud-init settings; everything that these cannot say (more
    users, packages, commands) is rendered as user data, unless `user_data` replaces all of it.
    """

    datastore: Line | None = None
    interface: DriveInterface = "ide2"
    # Where the user data goes that Proxmox's own settings cannot say.
    snippets: Line = "local"
    # How the drive is laid out; None leaves that to Proxmox, which goes by the operating system.
    type: Literal["configdrive2", "nocloud", "opennebula"] | None = None
    users: Many[User] = ()
    packages: Many[Line] = ()
    upgrade: bool = False
    timezone: Line | None = None
    # Made before the guest is, so that the first login knows whom it talks to; None: the guest makes its own.
    host_key: HostKey | None = None
    files: Many[WrittenFile] = ()
    commands: Many[Text] = ()
    user_data: File | Inline | None = None
    vendor_data: File | Inline | None = None
    network_data: File | Inline | None = None
    meta_data: File | Inline | None = None

    @model_validator(mode="after")
    def _users_have_names(self) -> Self:
        needs_names = len(self.users) > 1 or self.packages or self.commands or self.files or self.timezone
        if (needs_names or self.host_key is not None) and any(user.name is None for user in self.users):
            raise ValueError("a user needs a `name` beside others, packages, commands, files or a time zone")
        return self


class Agent(Value):
    """The QEMU guest agent."""

    enabled: bool = True
    trim: bool = False
    type: Literal["virtio", "isa"] = "virtio"
    timeout_s: Seconds = 900


class Verify(Value):
    """How it is proved that a guest is up."""

    agent: bool = True
    address: bool = True
    tcp_ports: Many[Annotated[int, Field(ge=1, le=65535)]] = ()
    ssh: bool = False
    timeout_s: Seconds = 300


class Clone(Value):
    """The guest that a new one is copied from."""

    vm_id: VmId
    node: Line | None = None
    datastore: Line | None = None
    full: bool = True
    retries: Annotated[int, Field(ge=1, le=10)] = 3


class GuestBase(Value):
    """What a virtual machine and a container both are to their users."""

    # Names the guest in plans and states, whatever it is called and wherever it runs; it never changes.
    key: Key
    name: GuestName
    node: Line
    # None: Proxmox assigns one.
    vm_id: VmId | None = None
    # Whether the id was counted from the place in the input, and no user wrote it down: then it is a wish
    # for a guest that is not there yet, and one that exists keeps its own.
    vm_id_counted: bool = False
    description: Annotated[str, StringConstraints(max_length=8192)] | None = None
    tags: Tags = ()
    pool: Line | None = None
    protection: bool = False
    on_boot: bool = True
    started: bool = True
    is_template: bool = False
    startup: Startup | None = None
    clone: Clone | None = None
    dns: Dns | None = None
    hook_script: File | None = None
    # It was there before anyone wrote it down: what belongs to its making is neither known nor done again.
    imported: bool = False
    # None: no one but its own node looks after it.
    ha: HighAvailability | None = None
    # None: nobody manages its firewall here.
    firewall: Firewall | None = None
    # To which nodes its disks are copied, so that it can go on there.
    replication: Replications = ()
    # Keys of guests that have to be there first.
    depends_on: Many[Key] = ()
    verify: Verify = Verify()
