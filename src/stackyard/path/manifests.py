"""The manifests of a site as targets: what runs on a host itself; what is inside of it is run from there."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError
from stackyard.desired import Download
from stackyard.guard.cluster import OWNER_TAG
from stackyard.path.environment import resolve_by_state, resolve_on
from stackyard.path.first_boots import FirstBoots, own_boots
from stackyard.path.source_locations import in_env
from stackyard.path.target import Target
from stackyard.sources.manifest.model import NodeType, Scope
from stackyard.sources.manifest.read import ManifestRequest, find_manifest
from stackyard.sources.manifest.scopes import build_scope, env_name, with_scopes
from stackyard.sources.site.build_guest import NodeChoice
from stackyard.sources.site.scope import files_of_env, files_of_host

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.desired import Desired
    from stackyard.path.target import Resolved
    from stackyard.sources.manifest.model import Manifest
    from stackyard.sources.site import ConfigResolver

__all__ = [
    "KIND",
    "ManifestSource",
    "NotOnHostError",
    "first_boots_of",
    "require_used",
    "resolve_manifest",
    "tag_of",
]

KIND = "manifest"
_LONGEST_TAG = 128
# How the keys of images begin that a site lets its nodes download.
_IMAGE = "image/"


class NotOnHostError(InvalidInputError):
    """A manifest names the hosts of its nodes, and the one that is asked for is none of them."""

    code = "E-MANIFEST-HOST-EMPTY"
    summary = "A manifest has nothing on this host"
    default_remedy = "Name one of its hosts with -H."


@dataclass(frozen=True, slots=True)
class ManifestSource:
    """The manifests of one site."""

    resolver: ConfigResolver

    @property
    def kind(self) -> str:
        """The word before the colon."""
        return KIND

    def names(self) -> Sequence[str]:
        """Return the manifests, also those whose files cannot be read."""
        return sorted({*self.resolver.list_manifests(), *self.resolver.site.broken["manifests"]})

    def is_current(self) -> bool:
        """Return whether the site is what it was when it was read."""
        return self.resolver.site.is_current()

    def resolve_state(self, name: str, host: str | None) -> Resolved:
        """Return a target with nothing in it; see `resolve_by_state`."""
        return resolve_by_state(self.resolver, self.kind, name, host)

    def resolve(self, name: str, host: str | None) -> Resolved:
        """Return what a manifest has on a host.

        Raises:
            NodeNotChosenError: No host is named, and there is more than one.
            NotOnHostError: It has nothing there.
            NoTokenError: There is no token for it.
            InvalidInputError: Something is wrong with it; the error carries every problem.
        """
        manifest = find_manifest(self.resolver.site, ManifestRequest(name=name))
        return resolve_manifest(self.resolver, manifest, self._host(manifest, host))

    def _host(self, manifest: Manifest, said: str | None) -> str:
        return self.resolver.any_node(said or manifest.only_host)


def tag_of(manifest: str) -> str:
    """Return the tag that the guests of a manifest carry: it says who made them where no state does."""
    return f"{OWNER_TAG}{manifest.lower()}"[:_LONGEST_TAG]


def resolve_manifest(resolver: ConfigResolver, manifest: Manifest, host: str) -> Resolved:
    """Return what a manifest has on a host.

    Raises:
        NotOnHostError: It has nothing there.
        NoTokenError: There is no token for it.
        InvalidInputError: It does not fit there; the error carries every problem.
    """
    require_used(resolver, manifest, host)
    here = manifest.on(host)
    scope = Scope(host=host)
    if scope not in here.scopes:
        others = ", ".join(sorted({str(node.scope) for node in here.roots}))
        raise NotOnHostError(f"The manifest '{manifest.name}' is on {others}, and not on {host}.")
    target = Target(kind=KIND, name=manifest.name, node=host)
    made = first_boots_of(resolver, target).ensure(
        node.name for node in here.scopes[scope] if node.type is not NodeType.CT
    )
    boots, values = own_boots(made)
    node = NodeChoice.of(resolver.site.nodes[host])
    desired = build_scope(resolver.site, here, scope, node, own_boots=boots)
    resolved = resolve_on(resolver, target, _patient(_own(desired, manifest.name), manifest))
    return dataclasses.replace(
        resolved,
        secrets=resolved.secrets.with_values(values),
        locate=in_env(with_scopes(resolver.site, here), env_name(here, scope)),
    )


def require_used(resolver: ConfigResolver, manifest: Manifest, host: str) -> None:
    """Refuse a manifest that uses files of the site which have problems.

    Raises:
        InvalidInputError: There are problems; the error carries every one.
    """
    site = resolver.site
    scoped = with_scopes(site, manifest)
    own = site.paths.get(manifest.places.path)
    used = {*files_of_host(site, host), *(() if own is None else (own,))}
    used.update(file for env in scoped.envs for file in files_of_env(scoped, env))
    for node in manifest.nodes:
        if node.scope.host is not None:
            used |= files_of_host(site, node.scope.host)
    resolver.require(f"The manifest '{manifest.name}'", used)


def _own(desired: Desired, manifest: str) -> Desired:
    """Return what a manifest needs, so that no one else has the same: tagged guests, images of its own.

    Two manifests on a host may want the same image; each keeps and removes its own copy.
    """
    tag, prefix = tag_of(manifest), f"{manifest}-"
    own: dict[str, object] = {
        field: tuple(guest.model_copy(update={"tags": tuple(sorted({*guest.tags, tag}))}) for guest in kind)
        for field, kind in (("vms", desired.vms), ("containers", desired.containers))
    }
    own["files"] = tuple(
        file.model_copy(update={"file_name": f"{prefix}{file.stored_name}"})
        if isinstance(file, Download)
        and file.key.startswith(_IMAGE)
        and not file.stored_name.startswith(prefix)
        else file
        for file in desired.files
    )
    return desired.model_copy(update=own)


def _patient(desired: Desired, manifest: Manifest) -> Desired:
    """Return the same with agents that are waited for no longer than it is proved that their guests are up.

    Otherwise a guest that never answers holds up the engine, and with it the end of the run.
    """
    buffer_s = manifest.settings.timeout_buffer
    vms = tuple(
        vm.model_copy(update={"agent": vm.agent.model_copy(update={"timeout_s": longest_s})})
        if vm.agent.timeout_s > (longest_s := max(vm.verify.timeout_s + buffer_s, 1))
        else vm
        for vm in desired.vms
    )
    return desired.model_copy(update={"vms": vms})


def first_boots_of(resolver: ConfigResolver, target: Target) -> FirstBoots:
    """Return the records of what was made for the first boots of the guests of a target."""
    return FirstBoots(resolver.site.store, target)
