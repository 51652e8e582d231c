"""What is asked of a connection, what is planned, and what was done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.guard.features import DEFAULT_FEATURES, Feature, NeededPrivilege

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.clients.proxmox.access import AccessCall, AccessRequest
    from stackyard.operator.connect.contents import ContentChange
    from stackyard.operator.connect.endpoints import NodeEndpoint
    from stackyard.operator.connect.survey import ClusterSeen
    from stackyard.sources.site.connected_site import SitePlan, WrittenSite

__all__ = ["ConnectPlan", "ConnectRequest", "Connected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectRequest:
    """What is asked for.

    Attributes:
        root: The folder of the site.
        url: The address of the API.
        fingerprint: The pinned certificate; None where an authority of this system vouches for it.
        credentials: Who asks.
        caller: The name of that user or token.
        features: What stackyard is to do there.
        token_name: The name of the new token.
        nodes: Only these nodes; all when empty.
        alias: What the site calls the one node; its own name when absent.
        datastore: Where disks go; chosen when absent.
        file_datastore: Where images and snippets go; chosen when absent.
        renews: Whether a token that is there is replaced.
        overwrites: Whether values of files that differ are overwritten.
        adds_content: Whether the datastore of files is to take what images and snippets need.
    """

    root: Path
    url: str
    fingerprint: str | None
    credentials: proxmox.Ticket | proxmox.Token
    caller: str
    features: tuple[Feature, ...] = DEFAULT_FEATURES
    token_name: str = "connect"  # noqa: S105 -- the name of the token, not its secret
    nodes: tuple[str, ...] = ()
    alias: str | None = None
    datastore: str | None = None
    file_datastore: str | None = None
    renews: bool = False
    overwrites: bool = False
    adds_content: bool = False

    def connection(self, credentials: proxmox.Ticket | proxmox.Token | None = None) -> proxmox.Connection:
        """Return the way to the API, as the one who asks or as another."""
        return proxmox.Connection(
            endpoint=self.url,
            credentials=credentials or self.credentials,
            trust=proxmox.Trust(fingerprint=self.fingerprint),
            timeout_s=30.0,
            patience_s=30.0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectPlan:
    """What is to be done; nothing of it is done yet.

    Attributes:
        request: What was asked for.
        cluster: What there is.
        endpoints: How each node is reached.
        privileges: What the token gets, or what the features need of the token that was given.
        site: What is to be written.
        access: Role, user and token; None where the token that was given is used itself.
        calls: What has to be done for them.
        missing: What of the privileges the token that was given does not have.
        token: The token to write; None if a new one is made, or the secrets have it already.
        contents: What datastores of files have to take in addition.
    """

    request: ConnectRequest
    cluster: ClusterSeen
    endpoints: Mapping[str, NodeEndpoint]
    privileges: tuple[NeededPrivilege, ...]
    site: SitePlan
    access: AccessRequest | None = None
    calls: tuple[AccessCall, ...] = ()
    missing: tuple[NeededPrivilege, ...] = ()
    token: str | None = field(default=None, repr=False)
    contents: tuple[ContentChange, ...] = ()

    @property
    def content_changes(self) -> tuple[ContentChange, ...]:
        """What of that is done now."""
        return self.contents if self.request.adds_content else ()

    @property
    def token_id(self) -> str:
        """The token that the site uses."""
        return self.request.caller if self.access is None else self.access.token_id

    @property
    def steps(self) -> tuple[str, ...]:
        """What is done on the cluster, in words."""
        contents = tuple(change.what for change in self.content_changes)
        return (*contents, *(call.what for call in self.calls))

    @property
    def changes_nothing(self) -> bool:
        """Whether everything is as it should be."""
        has_none = not self.calls and not self.content_changes
        return has_none and not self.site.texts and self.token is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected:
    """What was done."""

    plan: ConnectPlan
    written: WrittenSite

    def document(self) -> dict[str, Any]:
        """Return the JSON view."""
        plan, request = self.plan, self.plan.request
        return {
            "url": request.url,
            "fingerprint": request.fingerprint,
            "cluster": plan.cluster.document(),
            "features": [feature.value for feature in request.features],
            "access": {
                "role": None if plan.access is None else plan.access.role,
                "user": plan.token_id.partition("!")[0],
                "token": plan.token_id,
                "is_given_token": plan.access is None,
                "privileges": [one.document() for one in plan.privileges],
                "missing": [one.document() for one in plan.missing],
                "done": list(plan.steps),
            },
            "site": {
                "root": str(plan.site.root),
                "is_new": plan.site.is_new,
                "nodes": dict(plan.site.nodes),
                "api_token": plan.site.token_key,
                "files": list(self.written.files),
                "kept": {str(one.path): list(one.kept) for one in plan.site.edited if one.kept},
                "age_key_made": None if self.written.new_key is None else str(self.written.new_key),
                "ssh_key_made": None if self.written.ssh_key is None else str(self.written.ssh_key),
            },
        }
