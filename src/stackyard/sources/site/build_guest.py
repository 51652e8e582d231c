"""One guest as the fields of the `Desired` model, and the way back from those to the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from stackyard.desired import CloudInit, Dns, Nic
from stackyard.sources.site.addresses import Interface
from stackyard.sources.site.layers import FIRST_NIC, NIC_KEYS, vmid_of
from stackyard.sources.site.postures import posture_of
from stackyard.sources.site.protection import node_names
from stackyard.sources.site.pull import pull_boot
from stackyard.sources.site.specs import first_boot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackyard.base.errors import Location
    from stackyard.sources.site.document import Key
    from stackyard.sources.site.entities.nodes import NodeFile
    from stackyard.sources.site.images import Files
    from stackyard.sources.site.layers import GuestEntry
    from stackyard.sources.site.load import Site
    from stackyard.sources.site.networks import NetworkCard, Networks
    from stackyard.sources.site.tree import LoadedFile

__all__ = ["GuestBuilder", "GuestLocations", "NodeChoice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChoice:
    """The node that guests are built for.

    Attributes:
        name: What Proxmox calls it.
        datastore: Where disks go.
        file_datastore: Where images and snippets go.
    """

    name: str
    datastore: str
    file_datastore: str = "local"

    @classmethod
    def of(cls, node: LoadedFile[NodeFile]) -> NodeChoice:
        """Return a node of the site."""
        model = node.model
        return cls(
            name=model.node or node.name, datastore=model.datastore, file_datastore=model.file_datastore
        )


# What is put elsewhere in the model, or only says how to put it there.
_NOT_COPIED = NIC_KEYS | frozenset(
    "type image spec cores memory memory_options disk packages vmid cpu nics disks efi_disk tpm root_disk "
    "cloud_init node key name backup replication".split()
)


class GuestBuilder:
    """Turns guests of an env into fields of the model.

    Args:
        site: The site.
        env: Which env.
        networks: What its guests plug into.
        files: Takes the files that they need.
    """

    def __init__(self, site: Site, env: str, *, networks: Networks, files: Files) -> None:
        self._site = site
        self._env = site.envs[env]
        self._networks = networks
        self._files = files
        posture = self._env.model.posture
        known = posture in site.postures or posture in site.flat_postures
        self._posture = posture_of(site, posture) if known else None
        defaults = site.settings.defaults
        has_dns = defaults.dns_servers or defaults.domain
        self._dns = Dns(servers=defaults.dns_servers, domain=defaults.domain) if has_dns else None

    def vm(self, guest: GuestEntry, node: NodeChoice) -> dict[str, Any]:
        """Return a virtual machine."""
        values = guest.values
        fields = self._base(guest, node)
        if values.get("memory") is not None or "memory_options" in values:
            fields["memory"] = _with(values.get("memory_options"), dedicated_mib=values.get("memory"))
        fields["disks"] = self._disks(guest, node)
        for key in ("efi_disk", "tpm"):
            if values.get(key) is not None:
                fields[key] = {"datastore": node.datastore, **_set(values[key])}
        if values.get("cloud_init") is not None or (
            "cloud_init" not in values and (values.get("image") or values.get("clone"))
        ):
            fields["cloud_init"] = self._cloud_init(guest, node)
        self._files.use(fields)
        return fields

    def plain_nics(self, guest: GuestEntry) -> tuple[Nic, ...] | None:
        """Return the cards of a virtual machine, ready made, where all of them are plain; else nothing."""
        nics = [] if guest.is_container else [_plain_nic(card) for card in self._networks.cards(guest)]
        ready = tuple(nic for nic in nics if nic is not None)
        return ready if ready and len(ready) == len(nics) else None

    def container(self, guest: GuestEntry, node: NodeChoice) -> dict[str, Any]:
        """Return a container."""
        values = guest.values
        fields = self._base(guest, node)
        if values.get("memory") is not None or "memory_options" in values:
            fields["memory"] = _with(values.get("memory_options"), dedicated_mib=values.get("memory"))
        if values.get("disk") is not None or values.get("root_disk") is not None:
            disk = _with(values.get("root_disk"), size_gib=values.get("disk"))
            fields["root_disk"] = {"datastore": node.datastore, **disk}
        if values.get("image") is not None:
            fields["template"] = self._files.image(values["image"], node.name)
        if not values.get("imported"):
            self._add_root(fields)
        # Nothing carries these into a container; the model refuses them by their names. Packages of guests of
        # a manifest are installed by the operator, once they run.
        refused = ("cloud_init",) if guest.name in self._site.own_boots else ("packages", "cloud_init")
        fields.update({key: values[key] for key in refused if values.get(key) is not None})
        self._files.use(fields)
        return fields

    def _add_root(self, fields: dict[str, Any]) -> None:
        """Let root of a new container in with the keys and the password of the site."""
        secrets = self._site.secret_values
        if "ssh_keys" not in fields:
            fields["ssh_keys"] = list(secrets.ssh_keys.values())
        if "password" not in fields and "vm_root" in secrets.passwords:
            fields["password"] = {"secret": "passwords.vm_root"}

    def _base(self, guest: GuestEntry, node: NodeChoice) -> dict[str, Any]:
        values = guest.values
        fields = {
            key: _set(value) for key, value in values.items() if key not in _NOT_COPIED and value is not None
        }
        fields["key"] = values.get("key") or guest.name
        fields["name"] = guest.name
        fields["node"] = node.name
        fields["vm_id"] = vmid_of(guest, self._env.model.vmid_base)
        if "vmid" not in values and fields["vm_id"] is not None:
            fields["vm_id_counted"] = True
        if values.get("cores") is not None or "cpu" in values:
            fields["cpu"] = _with(values.get("cpu"), cores=values.get("cores"))
        fields["nics"] = [card.values for card in self._networks.cards(guest)]
        if values.get("replication") is not None:
            fields["replication"] = node_names(self._site, _set(values["replication"]))
        if self._dns is not None and "dns" not in values and not values.get("imported"):
            fields["dns"] = self._dns
        return fields

    def _disks(self, guest: GuestEntry, node: NodeChoice) -> list[dict[str, Any]]:
        values = guest.values
        written = values.get("disks")
        if written is None:
            return [self._only_disk(values, node)] if values.get("image") or values.get("disk") else []
        taken = {disk.get("interface") for disk in written}
        free = (f"scsi{number}" for number in range(31) if f"scsi{number}" not in taken)
        result = []
        for index, disk in enumerate(written):
            first: dict[str, Any] = {}
            if index == 0 and values.get("disk") is not None:
                first["size_gib"] = values["disk"]
            if index == 0 and values.get("image") is not None and "file" not in disk:
                first["file"] = self._files.image(values["image"], node.name)
            interface = disk.get("interface") or next(free, "scsi31")
            result.append({"datastore": node.datastore, **_set(disk), **first, "interface": interface})
        return result

    def _only_disk(self, values: dict[str, Any], node: NodeChoice) -> dict[str, Any]:
        disk = {"interface": "scsi0", "datastore": node.datastore}
        if values.get("disk") is not None:
            disk["size_gib"] = values["disk"]
        if values.get("image") is not None:
            disk["file"] = self._files.image(values["image"], node.name)
        return disk

    def _cloud_init(self, guest: GuestEntry, node: NodeChoice) -> CloudInit | dict[str, Any]:
        """Return what happens at the first boot, with the users and packages of the site and the spec."""
        values = guest.values
        if "cloud_init" in values:
            return self._read_boot(guest, node)
        posture = self._env.model.posture
        own = self._site.own_boots.get(guest.name)
        if pull_boot(self._site, guest.name, values.get("spec")):
            # What it fetches its spec with has its own name in it.
            return self._read_boot(guest, node)
        kind = (posture, node.datastore, values.get("spec"), tuple(values.get("packages") or ()))
        known = self._site.boots.get(kind)
        if known is None:
            fields = self._read_boot(guest, node)
            fields.pop("host_key", None)
            try:
                known = self._site.boots[kind] = CloudInit.model_validate(fields)
            except ValidationError:
                # As part of the whole guest it is refused with its place.
                return fields
        return known if own is None else known.model_copy(update={"host_key": own.host_key})

    def _read_boot(self, guest: GuestEntry, node: NodeChoice) -> dict[str, Any]:
        said = _set(guest.values.get("cloud_init") or {})
        keys = self._site.secret_values.ssh_keys
        for user in said.get("users", ()):
            if "keys" in user:
                user["keys"] = [keys.get(key.removeprefix("ssh_keys."), key) for key in user["keys"]]
        if guest.values.get("imported"):
            # Its first boot is long past; of the site's wishes for that nothing would come true.
            return {"datastore": node.datastore, **said}
        boot = first_boot(self._site, self._posture, guest.values.get("spec"))
        packages = list(dict.fromkeys([*boot.packages, *(guest.values.get("packages") or ())]))
        fields = {"datastore": node.datastore, "users": boot.users, "timezone": boot.timezone, **said}
        own = self._site.own_boots.get(guest.name)
        if own is not None and own.host_key is not None:
            fields.setdefault("host_key", own.host_key)
        pull = pull_boot(self._site, guest.name, guest.values.get("spec"))
        for key in pull.keys() & {"files", "commands"}:
            fields[key] = [*pull[key], *said.get(key, ())]
        return _with(fields, packages=list(dict.fromkeys([*packages, *pull.get("packages", ())])))


_PLAIN_NIC = frozenset({"bridge", "vlan", "ipv4", "gateway4"})


def _plain_nic(card: NetworkCard) -> Nic | None:
    """Return a card with a static address, checked here as the model does; nothing of other cards.

    The model would parse the same addresses several times over, which takes longer than everything else.
    """
    values = card.values
    interface = card.interface
    if interface is None or not values.keys() <= _PLAIN_NIC or str(interface) != values.get("ipv4"):
        return None
    gateway = values.get("gateway4")
    if gateway is not None:
        reached = Interface.parse(gateway)
        is_there = interface.network.holds(reached) and reached.number != interface.number
        if not is_there or reached.address != gateway:
            return None
    return Nic.model_construct(**values)


def _set(value: Any) -> Any:
    """Return a copy of a mapping without what is null: that means as if it were not said."""
    if isinstance(value, dict):
        return {key: _set(part) for key, part in value.items() if part is not None}
    return [_set(part) for part in value] if isinstance(value, list) else value


def _with(mapping: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    result: dict[str, Any] = _set({**(mapping or {}), **more})
    return result


_WRITTEN_AS: dict[tuple[Key, ...], tuple[Key, ...]] = {
    ("cpu", "cores"): ("cores",),
    ("memory", "dedicated_mib"): ("memory",),
    ("vm_id",): ("vmid",),
    ("disks", 0, "size_gib"): ("disk",),
    ("disks", 0, "file"): ("image",),
    ("root_disk", "size_gib"): ("disk",),
    ("template",): ("image",),
    ("cloud_init", "packages"): ("packages",),
    ("key",): ("name",),
}


class GuestLocations:
    """The places behind the fields of a built guest.

    Args:
        guest: The guest.
        data: Its fields as they were built.
    """

    def __init__(self, guest: GuestEntry, data: dict[str, Any]) -> None:
        self._guest = guest
        self.path = guest.layers[-1].places.path
        self.data = data

    def place(self, keys: Sequence[Key] = ()) -> Location:
        """Return where a field was written."""
        return self._guest.place(*_list_spellings(tuple(keys)))

    def key_place(self, keys: Sequence[Key]) -> Location:
        """Return where a field was written; what is built has no keys of its own."""
        return self.place(keys)


def _list_spellings(path: tuple[Key, ...]) -> Iterator[tuple[Key, ...]]:
    """Return how a field may have been written, the most exact first."""
    while path:
        yield path
        short = _WRITTEN_AS.get(path)
        if short is None and len(path) == 3 and path[:2] == ("nics", 0):
            short = (FIRST_NIC.get(str(path[2]), ""),)
        if short is not None:
            yield short
        if len(path) == 3 and path[0] == "nics":
            yield from ((*path[:2], "network"), ("network",))
        path = path[:-1]
