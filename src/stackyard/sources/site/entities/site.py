"""`site.yaml`: what holds for the whole site."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from stackyard.base.errors import StackyardError
from stackyard.base.extras import MissingExtraError
from stackyard.clients.objects.open_store import check_address
from stackyard.desired.values import DnsName, InterfaceName
from stackyard.sources.site.entities.images import FileEntry, Image, PoolEntry
from stackyard.sources.site.entities.networks import Network
from stackyard.sources.site.entities.values import Entity, HostAddress, Line, Many, Named, TimeZone, Url
from stackyard.sources.site.timeouts import TIMEOUTS, find_phase

__all__ = ["SiteDefaults", "SiteFile"]

# Each of these has an older and a newer name.
SYNONYMS = (
    ("ssh_user", "host_user"),
    ("automation_user", "vm_user"),
    ("spec_server", "server_url"),
    ("packer_release", "image_release"),
)


def _store_address(text: str) -> str:
    try:
        check_address(text)
    except MissingExtraError:
        # The address may be right: it cannot be used here.
        raise
    except StackyardError as err:
        raise ValueError(err.detail) from err
    return text


class Overcommit(Entity):
    """How many times what a node or datastore has may be promised to guests; more is refused."""

    # Of the memory of a node, by guests that run; without, promising more is a warning alone.
    memory: Annotated[float, Field(ge=1, le=100)] | None = None
    # Of the size of a thin datastore, by the new disks of one plan; once when absent.
    storage: Annotated[float, Field(ge=1, le=100)] | None = None


class SiteDefaults(Entity):
    """What holds where nothing else is said."""

    timezone: TimeZone | None = None
    domain: DnsName | None = None
    # Who logs in to nodes and hosts; `host_user` is the newer name.
    ssh_user: Line | None = None
    host_user: Line | None = None
    # Who logs in to guests; `vm_user` is the newer name.
    automation_user: Line | None = None
    vm_user: Line | None = None
    # The private key to log in to guests and nodes with: a path, from the folder of the site or `~`.
    ssh_key_file: Line | None = None
    # The folder with playbooks/config-apply.yml, from the folder of the site; `ansible` when absent.
    ansible: Line | None = None
    bridge: InterfaceName | None = None
    gateway: HostAddress | None = None
    dns_servers: Many[HostAddress] = ()
    packages: Many[Line] = ()
    pve_remove_subscription_nag: bool | None = None
    # Where guests fetch their specs; `server_url` is the newer name.
    spec_server: Url | None = None
    server_url: Url | None = None
    # The SHA-256 of its public key, which guests pin; that of the certificate kept with the site when absent.
    spec_server_pin: Annotated[str, StringConstraints(pattern=r"^sha256//[A-Za-z0-9+/]{43}=$")] | None = None
    # Which release images are taken from; `image_release` is the newer name.
    packer_release: Line | None = None
    image_release: Line | None = None
    # How much more memory and storage may be promised than there is.
    overcommit: Overcommit = Overcommit()

    # How long phases of a run may take, in seconds, by the names of docs/howto/operator.md.
    timeouts: dict[str, Annotated[float, Field(gt=0, le=604_800)]] = Field(default_factory=dict)

    @field_validator("timeouts")
    @classmethod
    def _names_phases(cls, said: dict[str, float]) -> dict[str, float]:
        unknown = [name for name in said if find_phase(name) is None]
        if unknown:
            raise ValueError(f"there is no phase `{unknown[0]}`; there is {', '.join(TIMEOUTS)}")
        return said

    @model_validator(mode="after")
    def _refuse_duplicates(self) -> Self:
        for old, new in SYNONYMS:
            one, other = getattr(self, old), getattr(self, new)
            if one is not None and other is not None and one != other:
                raise ValueError(f"`{old}` and `{new}` are two names of one thing, and differ: keep one")
        return self


class SiteFile(Entity):
    """The site as a whole."""

    defaults: SiteDefaults = SiteDefaults()
    # Where what runs leave is kept: s3://…, postgresql://… or https://…; in `.stackyard` when absent.
    store: Annotated[Line, AfterValidator(_store_address)] | None = None
    # Networks that are there for every env.
    networks: Named[Network] = Field(default_factory=dict)
    images: Named[Image] = Field(default_factory=dict)
    files: Named[FileEntry] = Field(default_factory=dict)
    pools: Named[PoolEntry | None] = Field(default_factory=dict)
