"""Guests of both kinds as documents: `guests/<vmid>`.

A document has `vmid node type config pending pending_delete snapshots digest` and the running state:
`status` (`running` or `stopped`), `started` (lab time) and `run`, what else only a running guest has.
`config` holds what Proxmox keeps in the guest's file, `lock` and `template` included; `pending` and
`pending_delete` what waits for the next start. The digest changes with every change of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.problems import PveError
from pvelab.world.digests import digest_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.cluster.cluster import Cluster
    from pvelab.world.store import Document, Store

__all__ = ["COLLECTION", "MISMATCH", "MODIFIED", "Guests", "config_file", "digest_of"]

COLLECTION = "guests"

_FOLDERS = {"qemu": "qemu-server", "lxc": "lxc"}
_NAMES = {"qemu": "VM", "lxc": "CT"}
_HASHED = ("config", "pending", "pending_delete", "snapshots")

# What Proxmox says to a digest that is no longer the present one. Most calls go through one function
# (PVE::Tools::assert_if_modified), moving a disk and everything of a container among them; the configuration
# of a VM and the size of its disks are older code with words of their own (PVE::API2::Qemu, 9.x). Lists of
# texts that are taken from documentation have it the other way round for moving; the source decides here.
MODIFIED = "detected modified configuration - file changed by other user? Try again."
MISMATCH = "checksum mismatch (file change by other user?)"


def config_file(kind: str, node: str, vmid: int) -> str:
    """Return where Proxmox keeps a guest: `nodes/pve/qemu-server/100.conf`."""
    return f"nodes/{node}/{_FOLDERS[kind]}/{vmid}.conf"


class Guests:
    """Finds, checks and changes guests."""

    def __init__(self, store: Store, cluster: Cluster) -> None:
        self._store = store
        self._cluster = cluster
        self._by_node = store.index(COLLECTION, "node")

    def get(self, vmid: int | str) -> Document | None:
        """Return a guest of any kind on any node, or None."""
        return self._store.get(COLLECTION, str(vmid))

    def all(self) -> Mapping[str, Document]:
        """Return all guests by vmid."""
        return self._store.items(COLLECTION)

    def on_node(self, node: str, kind: str | None = None) -> list[Document]:
        """Return the guests of a node (of one kind), in the order of their vmid."""
        found = (guest for guest in self._by_node.find(node).values() if kind in (None, guest["type"]))
        return sorted(found, key=lambda guest: int(guest["vmid"]))

    def require(self, kind: str, node: str, vmid: int) -> Document:
        """Return a guest of one kind on one node.

        Raises:
            PveError: Its configuration file does not exist there.
        """
        found = self.get(vmid)
        if found is None or found["node"] != node or found["type"] != kind:
            raise PveError(f"Configuration file '{config_file(kind, node, vmid)}' does not exist")
        return found

    def require_free(self, vmid: int, kind: str) -> None:
        """Refuse to create a guest under a number that is taken.

        Raises:
            PveError: A guest of either kind has it.
        """
        found = self.get(vmid)
        if found is not None:
            new, old = _NAMES[kind], _NAMES[str(found["type"])]
            raise PveError(
                f"unable to create {new} {vmid} - {old} {vmid} already exists on node '{found['node']}'"
            )

    def next_free(self, lower: int, upper: int) -> int:
        """Return the lowest free number.

        Raises:
            PveError: None is free.
        """
        taken = self.all()
        for vmid in range(lower, upper):
            if str(vmid) not in taken:
                return vmid
        raise PveError(f"unable to get any free VMID in range [{lower}, {upper}]")

    def create(self, kind: str, node: str, vmid: int, config: Mapping[str, Any]) -> None:
        """Add a stopped guest."""
        document = {
            "vmid": vmid,
            "node": node,
            "type": kind,
            "config": dict(config),
            "pending": {},
            "pending_delete": {},
            "snapshots": {},
            "status": "stopped",
            "started": None,
            "run": {},
        }
        self.save(document)

    def update(self, guest: Document, **fields: Any) -> Document:
        """Replace fields of a guest (`config=...`, `status=...`) and return it as it is now."""
        return self.save({**guest, **fields})

    def save(self, document: Mapping[str, Any]) -> Document:
        """Put a whole guest, with its digest.

        Raises:
            PveError: Its configuration changes and there is no quorum; its running state may change.
        """
        saved = _with_digest(document)
        old = self.get(saved["vmid"])
        if old is None or old["digest"] != saved["digest"]:
            kind, node = str(saved["type"]), str(saved["node"])
            self._cluster.require_writable(config_file(kind, node, int(saved["vmid"])))
        self._store.put(COLLECTION, str(saved["vmid"]), saved)
        return saved

    def plant(self, document: Mapping[str, Any]) -> None:
        """Put a whole guest into a lab that is new, whose nodes have nothing to agree on yet."""
        self._store.put(COLLECTION, str(document["vmid"]), _with_digest(document))

    def remove(self, vmid: int) -> None:
        """Drop a guest."""
        self._store.delete(COLLECTION, str(vmid))

    @staticmethod
    def check_digest(guest: Document, digest: str | None, text: str = MODIFIED) -> None:
        """Refuse a change based on a state that is no longer the present one.

        Raises:
            PveError: The digests differ.
        """
        if digest and digest != guest["digest"]:
            raise PveError(text)

    @staticmethod
    def check_unlocked(guest: Document, *, but: str | None = None) -> None:
        """Refuse to touch a locked guest.

        Raises:
            PveError: It has a lock (other than `but`): `VM is locked (backup)`.
        """
        lock = guest["config"].get("lock")
        if lock and lock != but:
            raise PveError(f"{_NAMES[str(guest['type'])]} is locked ({lock})")


def _with_digest(document: Mapping[str, Any]) -> dict[str, Any]:
    return {**document, "digest": digest_of(*(document[field] for field in _HASHED))}
