"""The deployment object as a target: `stackyard plan deployment`."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.base.errors import InvalidInputError, StackyardError
from stackyard.base.redaction import NOTHING_SECRET
from stackyard.clients import proxmox
from stackyard.clients.ssh.host import Host, OpenSsh
from stackyard.clients.ssh.user_keys import user_keys
from stackyard.desired import Desired, Secret, Secrets
from stackyard.inventory.contract import EXTRAS
from stackyard.path.environment import NoTokenError, resolve_on
from stackyard.path.source_locations import in_deployment
from stackyard.path.ssh_login import AGENT_VARIABLE
from stackyard.path.target import Resolved, SshAccess, Target
from stackyard.render.legacy_names import find_renamed
from stackyard.render.references import address_of
from stackyard.sources.deployment.constants import constants_of
from stackyard.sources.deployment.fetch import fetch, rules_of
from stackyard.sources.deployment.settings import find_place
from stackyard.sources.deployment.store import ObjectMissingError
from stackyard.sources.deployment.text import EmptyObjectError, ObjectSyntaxError
from stackyard.sources.deployment.validate import check
from stackyard.sources.deployment.words import NOT_ACTED_ON
from stackyard.sources.deployment.worktree import require_clean
from stackyard.sources.site import ConfigResolver
from stackyard.sources.site.discovery import SiteNotFoundError, find_site
from stackyard.state import StateService
from stackyard.state.guests import read_guests

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.sources.deployment.fetch import Object
    from stackyard.sources.deployment.model import ParsedDeployment
    from stackyard.sources.deployment.settings import ObjectLocation
    from stackyard.sources.store import ChosenStore

__all__ = ["DeploymentSource"]

KIND = "deployment"
_ENDPOINT, _TOKEN = "PROXMOX_VE_ENDPOINT", "PROXMOX_VE_API_TOKEN"
_SSH_PORT = 22


@dataclass(frozen=True, slots=True)
class DeploymentSource:
    """The one object, fetched again each time it is resolved.

    Attributes:
        place: Where it is.
        emit: Told what is done.
        warn: Told what is wrong with the object and stops nothing; the same each time it is resolved.
        warn_last: Told which of its keys nothing is done with, as the last of all.
    """

    place: ObjectLocation
    emit: events.Emit = field(default=events.ignore)
    warn: events.Emit = field(default=events.ignore)
    warn_last: events.Emit = field(default=events.ignore)

    @classmethod
    def find(
        cls,
        *,
        emit: events.Emit = events.ignore,
        warn: events.Emit = events.ignore,
        warn_last: events.Emit = events.ignore,
    ) -> DeploymentSource:
        """Return the object that is found from here.

        Raises:
            InvalidInputError: Its settings are wrong.
        """
        return cls(find_place(), emit, warn, warn_last)

    @property
    def kind(self) -> str:
        """The word before the colon."""
        return KIND

    @property
    def store(self) -> ChosenStore:
        """Where what runs leave for the next is kept: never the store of the object, which has its own word.

        Raises:
            InvalidInputError: It is not clear which store is meant.
        """
        return self.place.run_store()

    def names(self) -> Sequence[str]:
        """Return the one environment that the object here is for."""
        return (self.place.environment,)

    def target(self, name: str) -> Target:
        """Return the target of an environment, whatever the object says."""
        return Target(kind=KIND, name=name, node="cluster")

    async def require_clean(self) -> None:
        """Refuse a file of variables beside the object, and the object in git.

        Raises:
            InvalidInputError: It has one of them.
        """
        await require_clean(self.place)

    def is_current(self) -> bool:
        """Return whether the object is certainly the same: it has to be fetched to know."""
        return False

    def resolve(self, name: str, host: str | None) -> Resolved:
        """Fetch the object and return what it needs.

        Raises:
            FetchError: It cannot be fetched.
            InvalidInputError: It is missing, empty, cut off, or not valid; the error says how many guests a
                plan from it would have destroyed.
            NoTokenError: Nothing says how to reach the cluster.
        """
        target = self.target(name)
        known = _StateContent.of(self.store, target)
        try:
            found = fetch(self.place, emit=self.emit)
            rules = rules_of(self.place)
            checked = check(found.document, rules)
            checked.require()
        except (ObjectMissingError, EmptyObjectError, ObjectSyntaxError) as err:
            raise type(err)(f"{err.detail} {known.at_stake}", where=err.where, remedy=err.remedy) from err
        except StackyardError as err:
            err.detail = f"{err.detail} {known.at_stake}"
            raise
        desired, understood = checked.desired, checked.understood
        if desired is None or understood is None:
            raise InvalidInputError(f"{found.label} cannot be built.")
        for warning in checked.found.warnings:
            text = f"{warning.kind.summary} [{warning.kind.code}]: {warning.detail}"
            (self.warn_last if warning.kind is NOT_ACTED_ON else self.warn)(_make_warning(text))
        for text in known.list_misaligned(desired):
            self.warn(_make_warning(text))
        reached = self._resolve_cluster(target, host or understood.scope.node, desired)
        secrets = checked.secrets
        hidden = [secrets.reveal(Secret(secret=secret)) for secret in secrets]
        redactor = reached.redactor if rules.layer is None else rules.layer.redactor(reached.redactor)
        return replace(
            reached,
            secrets=secrets,
            redactor=redactor.with_secrets(hidden),
            version=found.binding,
            source=found.label,
            extras=_extras(understood, found),
            locate=in_deployment(found.document, understood),
        )

    def resolve_state(self, name: str, host: str | None) -> Resolved:
        """Return a target with nothing in it and the way to its cluster, for verbs that need the state alone.

        Raises:
            NoTokenError: Nothing says how to reach the cluster.
        """
        return self._resolve_cluster(self.target(name), host or "", Desired())

    def _resolve_cluster(self, target: Target, node: str, desired: Desired) -> Resolved:
        """Return the model with a way to the cluster: the words of the provider, else the site around."""
        env = self.place.environ
        if env.get(_ENDPOINT):
            return Resolved(
                target=target,
                desired=desired,
                secrets=Secrets(),
                connection=_from_environment(env),
                redactor=NOTHING_SECRET,
                ssh=_ssh_from_environment(env, desired),
            )
        try:
            resolver = ConfigResolver(find_site(start=self.place.root), emit=self.emit)
        except SiteNotFoundError as err:
            raise NoTokenError(
                f"Nothing says how to reach the API of {node}: {_ENDPOINT} is not set, and there is no site.",
                remedy=f"Set {_ENDPOINT} and {_TOKEN}, or keep the object beside a site that has the node.",
            ) from err
        hosts = {loaded.model.node or name: name for name, loaded in resolver.site.nodes.items()}
        if node not in hosts:
            unread = resolver.site.broken["nodes"]
            resolver.require(f"The node '{node}'", {("nodes", name) for name in unread})
            raise NoTokenError(
                f"The site {resolver.site.root} has no node {node}.",
                remedy=f"Write nodes/{node}.yaml with its `api_endpoint`, or set {_ENDPOINT} and {_TOKEN}.",
            )
        at_node = replace(target, node=hosts[node])
        return replace(resolve_on(resolver, at_node, desired), target=target)


def _make_warning(text: str) -> events.LogLine:
    return events.LogLine(level=events.LogLevel.WARNING, source=KIND, text=text)


def _extras(understood: ParsedDeployment, found: Object) -> Mapping[str, Any]:
    """Return what the readers of the inventory want beside the guests."""
    data = understood.scope.data
    known = (*EXTRAS, "nodes", "proxmox_node", "proxmox_user")
    splunk = next((guest for guest in understood.guests if guest.path == ("splunk_vm_id",)), None)
    return {
        **{key: data[key] for key in known if data.get(key)},
        "constants": constants_of(data.get("constants") or {}),
        "connections": {guest.key: guest.fields["ansible_connection"] for guest in understood.guests},
        "splunk": None if splunk is None else splunk.key,
        "domain": data.get("domain") or "",
        "etag": "" if found.version is None else found.version.etag,
    }


def _from_environment(env: Any) -> proxmox.Connection:
    token = env.get(_TOKEN)
    credentials: proxmox.Token | proxmox.Login
    if token:
        credentials = proxmox.Token(text=token)
    elif env.get("PROXMOX_VE_USERNAME") and env.get("PROXMOX_VE_PASSWORD"):
        credentials = proxmox.Login(username=env["PROXMOX_VE_USERNAME"], password=env["PROXMOX_VE_PASSWORD"])
    else:
        raise NoTokenError(f"{_ENDPOINT} is set, and {_TOKEN} is not.", remedy=f"Set {_TOKEN}.")
    is_insecure = env.get("PROXMOX_VE_INSECURE", "").lower() in ("1", "true", "yes")
    return proxmox.Connection(
        endpoint=env[_ENDPOINT],
        credentials=credentials,
        trust=proxmox.Trust(fingerprint=env.get("PROXMOX_VE_FINGERPRINT") or None, verify=not is_insecure),
    )


def _ssh_from_environment(env: Any, desired: Desired) -> SshAccess | None:
    user = env.get("PROXMOX_VE_SSH_USERNAME")
    if not user:
        return None
    nodes = sorted({guest.node for guest in desired.guests})
    other = Host(
        address="",
        username=user,
        password=env.get("PROXMOX_VE_SSH_PASSWORD") or None,
        private_key=env.get("PROXMOX_VE_SSH_PRIVATE_KEY") or None,
        key_files=user_keys(),
        agent_socket=env.get(AGENT_VARIABLE),
        openssh=OpenSsh(has_user=True),
    )
    return SshAccess(
        user=user,
        nodes=tuple((node, node, _SSH_PORT) for node in nodes),
        logins={node: replace(other, address=node) for node in nodes},
        other=other,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _StateContent:
    """What the state has, as far as it can be read.

    Attributes:
        guests: The id of each guest by the address of its resource.
        is_read: Whether the state could be read.
    """

    guests: dict[str, int]
    is_read: bool = True

    @classmethod
    def of(cls, store: ChosenStore, target: Target) -> _StateContent:
        try:
            with contextlib.closing(store.read()) as objects:
                content = StateService(objects).contents.read(target.state_name)
                guests = () if content is None else read_guests(content.body.data)
        except StackyardError:
            # This is read to tell more of an error, or to warn; the run itself reads the state again.
            return cls(guests={}, is_read=False)
        # One that was replaced and still has to go has the address of its resource, and a word behind it.
        return cls(guests={guest.address.partition(" ")[0]: guest.vm_id or 0 for guest in guests})

    @property
    def at_stake(self) -> str:
        """What a plan from nothing would have done."""
        if not self.is_read:
            return "Nothing was planned."
        count = len(self.guests)
        return f"Nothing was planned: a plan from it would destroy {count} guest{'' if count == 1 else 's'}."

    def list_misaligned(self, desired: Desired) -> list[str]:
        """Return where the keys of the object and of the state do not agree."""
        wanted = {address_of(guest): guest.vm_id for guest in desired.guests}
        by_id = {vm_id: address for address, vm_id in wanted.items()}
        renamed = find_renamed(desired, self.guests.keys())
        found = []
        for address, vm_id in self.guests.items():
            if address in wanted or address in renamed:
                continue
            if vm_id in by_id:
                found.append(
                    f"Keys do not agree: guest {vm_id} is {address} in the state and {by_id[vm_id]}"
                    " in the object; --accept-renames moves it in the state."
                )
            else:
                found.append(f"The state has {address} (guest {vm_id}), and the object does not.")
        return found
