"""Pull: a controller for the length of a run, from which guests fetch their specs at their first boot."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import shlex
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import SMALL
from stackyard.base.errors import InvalidInputError
from stackyard.controller import ControllerOptions, controller
from stackyard.operator.guests.phases import GuestConfigError, last_lines
from stackyard.operator.guests.push import run_as_root
from stackyard.path.first_boots import Pull
from stackyard.path.manifests import KIND, first_boots_of
from stackyard.path.target import Target
from stackyard.sources.manifest.model import NodeType, Scope
from stackyard.sources.manifest.scopes import env_name, with_scopes
from stackyard.sources.site.apply_script import spec_digest
from stackyard.sources.site.pull import boot_parts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from stackyard.clients import ssh
    from stackyard.operator.guests.context import GuestContext
    from stackyard.sources.manifest.model import Manifest, Node
    from stackyard.sources.site import ConfigResolver
    from stackyard.sources.site.hosts import HostConfig
    from stackyard.sources.site.load import Site

__all__ = ["CallbackError", "PullService", "pull_service", "wait_for_pull"]

_ANYWHERE = "0.0.0.0"  # noqa: S104 - guests call us by an address that may be another one here
_LOOPBACK = "127.0.0.1"
_STATE = "/var/lib/stackyard"
# A guest fetches its spec at the end of its first boot, so that is what is waited for; then it has left word.
_LOOK = f"""\
if command -v cloud-init >/dev/null; then cloud-init status --wait >/dev/null 2>&1; fi
for name in failed complete; do
if [ -e {_STATE}/$name.json ]; then
cat {_STATE}/$name.json
if [ $name = failed ]; then tail -n 20 {_STATE}/apply.log 2>/dev/null; fi
exit 0
fi
done
tail -n 20 /var/log/cloud-init-output.log 2>/dev/null
exit 3
"""


class CallbackError(InvalidInputError):
    """Guests are to fetch their specs from this machine, and it is not known how they reach it."""

    code = "E-GUEST-CALLBACK"
    summary = "Guests cannot reach this machine"
    default_remedy = (
        "Say `controller_address` (and `controller_port`) in the file of the node: how its guests call this "
        "machine. Or name a controller of your own as `spec_server` in site.yaml."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PullService:
    """The controller of a run.

    Attributes:
        server: How guests call it.
        pin: The SHA-256 of its public key.
        tokens: What each guest shows, by name.
    """

    server: str
    pin: str
    tokens: Mapping[str, str] = field(repr=False)


@contextlib.asynccontextmanager
async def pull_service(
    resolver: ConfigResolver, manifest: Manifest, host: str, *, emit: events.Emit = events.ignore
) -> AsyncIterator[PullService | None]:
    """Run a controller for the guests of a manifest on a host that pull, for the length of the block.

    It is there when the block begins, and so is what cloud-init gives to new guests: resolve the manifest
    inside of the block. There is none where no guest pulls, and where the site names one of its own.

    Raises:
        CallbackError: It is not known how guests reach this machine.
        ListenError: The port cannot be listened on.
        StackyardError: The site cannot be served.
    """
    specs = _specs(resolver.site, manifest.on(host), host)
    defaults = resolver.site.settings.defaults
    if not specs or defaults.spec_server is not None or defaults.server_url is not None:
        yield None
        return
    chosen = resolver.resolve_host(host)
    place = await asyncio.to_thread(_callback, chosen)
    options = ControllerOptions(
        site=resolver.site.root,
        bind=place.bind,
        port=chosen.controller_port or 0,
        names=(place.address,),
        guests=specs,
        run_tokens=True,
    )
    async with controller(options, emit=emit) as running:
        shown = f"[{place.address}]" if ":" in place.address else place.address
        tokens = {name: running.tokens.issue(node=name, note=manifest.name)[0] for name in specs}
        service = PullService(server=f"https://{shown}:{running.port}", pin=running.pin, tokens=tokens)
        given = {
            name: Pull(server=service.server, pin=service.pin, token=token) for name, token in tokens.items()
        }
        first_boots_of(resolver, Target(kind=KIND, name=manifest.name, node=host)).give(given)
        yield service


def _specs(site: Site, manifest: Manifest, host: str) -> dict[str, str]:
    """Return the specs of the guests that pull, by the names of the guests."""
    scope = Scope(host=host)
    nodes = [node for node in manifest.scopes.get(scope, ()) if _pulls(node)]
    if not nodes:
        return {}
    scoped = with_scopes(site, manifest).guests(env_name(manifest, scope))
    said = {guest.name: guest.values.get("spec") for guest in scoped}
    wanted = {node.name: str(said.get(node.name) or node.name) for node in nodes}
    return {name: spec for name, spec in wanted.items() if spec in site.specs}


def _pulls(node: Node) -> bool:
    return node.mode == "pull" and node.type is not NodeType.CT


@dataclass(frozen=True, slots=True, kw_only=True)
class _Callback:
    """How guests call this machine, and what it has to listen on for that."""

    address: str
    bind: str


def _callback(host: HostConfig) -> _Callback:
    own = _address_towards(host.ssh_host)
    is_local = own is not None and ipaddress.ip_address(own).is_loopback
    said = host.controller_address
    if said is not None:
        if _is_own(said):
            return _Callback(address=said, bind=said)
        # Someone passes on what guests send there: to our loopback where the node itself is on it.
        return _Callback(address=said, bind=_LOOPBACK if is_local else _ANYWHERE)
    if own is None or is_local:
        raise CallbackError(
            f"{host.name} is at {host.ssh_host or 'no address'}, which its guests cannot reach."
        )
    return _Callback(address=own, bind=own)


def _address_towards(name: str) -> str | None:
    """Return the address of this machine on the way to another; nothing is sent for that."""
    try:
        found = socket.getaddrinfo(name, 9, type=socket.SOCK_DGRAM)
        family, kind, protocol, _, place = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(place)
            return str(probe.getsockname()[0]).partition("%")[0]
    except OSError:
        return None


def _is_own(address: str) -> bool:
    """Return whether an address is one of this machine's."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


async def wait_for_pull(shell: ssh.Shell, node: Node, document: Mapping[str, Any], ctx: GuestContext) -> str:
    """Wait until a guest says that it has applied its spec; return what there is to say about it.

    A guest whose first boot did not get that far, and one whose spec has changed since, has to try again.

    Raises:
        GuestConfigError: It could not; the error ends with what it said last.
        SshError: The connection broke.
    """
    digest, said = spec_digest(document), ""
    marker = await _look(shell, ctx)
    if not _is_applied(marker, digest):
        said = f"It was asked to fetch its spec again: {marker.reason(digest)}"
        ended = await run_as_root(shell, _make_pull_script(node, ctx), timeout_s=ctx.patience.apply_s)
        if ended.status != 0:
            raise GuestConfigError(f"{said} It failed: {last_lines(ended.output)}")
        marker = await _look(shell, ctx)
        if not _is_applied(marker, digest):
            raise GuestConfigError(f"The spec was not applied: {marker.reason(digest)}")
    ctx.settled.add(node.name)
    return said


@dataclass(frozen=True, slots=True, kw_only=True)
class _Marker:
    """What a guest has left for the one that waits for it."""

    document: Mapping[str, Any]
    lines: str

    def reason(self, digest: str) -> str:
        """Return why this does not mean that a spec was applied."""
        if not self.document:
            return f"its first boot has left no word. {self.lines}".strip()
        if self.document.get("status") != "complete":
            why = last_lines(str(self.document.get("error", "a step failed")))
            return f"{why}. {self.lines}".strip()
        shown = str(self.document.get("digest", ""))[:12]
        return f"it has applied another version ({shown or 'unknown'}, expected {digest[:12]})."


def _is_applied(marker: _Marker, digest: str) -> bool:
    return marker.document.get("status") == "complete" and marker.document.get("digest") == digest


async def _look(shell: ssh.Shell, ctx: GuestContext) -> _Marker:
    ended = await run_as_root(shell, _LOOK, timeout_s=ctx.patience.boot_s)
    if ended.timed_out:
        raise GuestConfigError(f"Its first boot was not done after {ctx.patience.boot_s:.0f} s.")
    if ended.status == 3:
        return _Marker(document={}, lines=last_lines(ended.output))
    if ended.status != 0:
        raise GuestConfigError(f"Its marker cannot be read: {last_lines(ended.output)}")
    first, _, rest = ended.output.partition("\n")
    try:
        document = parse_json(first, SMALL)
    except ValueError:
        document = {}
    is_known = isinstance(document, dict)
    return _Marker(document=document if is_known else {}, lines=last_lines(rest) if rest.strip() else "")


def _make_pull_script(node: Node, ctx: GuestContext) -> str:
    """Return the script that lets a guest fetch its spec as its first boot does, from where it is now."""
    service = ctx.service
    parts = boot_parts(
        server="" if service is None else service.server,
        identity=node.name,
        token="" if service is None else service.tokens.get(node.name, ""),
        pin=None if service is None else service.pin,
    )
    settings, bootstrap = parts["files"]
    lines = ["set -eu", "umask 077"]
    for file in (bootstrap,) if service is None else (settings, bootstrap):
        path = shlex.quote(file["path"])
        lines += [f"mkdir -p {shlex.quote(file['path'].rpartition('/')[0])}"]
        lines += [f"printf %s {shlex.quote(file['content'])} >{path}", f"chmod {file['mode']} {path}"]
    return "\n".join([*lines, f"STACKYARD_RETRIES=1 exec {shlex.quote(bootstrap['path'])}", ""])
