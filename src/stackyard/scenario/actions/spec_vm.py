"""A guest that comes, fetches its spec from a server of ours, is looked at from inside, and goes."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from stackyard.base.documents.jsontext import parse_json
from stackyard.base.errors import UsageError
from stackyard.base.serving import AddressInUseError
from stackyard.controller import ControllerOptions, controller
from stackyard.controller.options import DEFAULT_PORT
from stackyard.operator.guests.access import log_in
from stackyard.operator.guests.context import guest_context
from stackyard.operator.guests.push import run_as_root
from stackyard.operator.outcome import Verb
from stackyard.operator.preflight import PreflightError, Status, inspect, subject_of
from stackyard.operator.request import VerbRequest
from stackyard.operator.verbs import run_verb
from stackyard.path.manifests import resolve_manifest
from stackyard.scenario.actions.images import DownloadImages, InstallImages
from stackyard.scenario.failures import PhaseFailedError
from stackyard.scenario.model import ActionResult
from stackyard.sources.manifest.read import ManifestRequest, find_manifest
from stackyard.sources.site import ConfigResolver
from stackyard.sources.site.pull import SETTINGS_PATH

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.clients import ssh
    from stackyard.operator.outcome import NodeOutcome, RunOutcome
    from stackyard.scenario.context import Context
    from stackyard.sources.manifest.model import Manifest

__all__ = [
    "CheckConfig",
    "DestroyVm",
    "EnsureImage",
    "ProvisionVm",
    "StartServer",
    "StopServer",
    "VerifyEnv",
    "VerifyServer",
    "VerifySsh",
]

NAME = "spec-vm"
# What the guest was called in the env that this scenario used before.
_OTHER_NAMES = ("test",)
_VM_ID = 99900
_IMAGE = "debian-12"
# What is taken where the site has several; the smallest first.
_PRESETS = ("vm-xsmall", "xsmall", "vm-small", "small")
_SPECS = ("test", "base")
_SERVER = "_server"
_LOOK_S = 60.0
# With a pin the key is known, no matter who signed the certificate; else the authorities of the guest decide.
_HEALTH = """\
. {settings}
curl -fsS --proto =https --max-time 20 ${{STACKYARD_PIN:+-k --pinnedpubkey "$STACKYARD_PIN"}} \
    "$STACKYARD_SERVER/health"
"""


def _resolver(context: Context) -> ConfigResolver:
    return ConfigResolver(context.needed_site.root, emit=context.emit)


def _host(context: Context) -> str:
    if context.name is None:
        raise PhaseFailedError(
            "Guests are created on a node of the site.", remedy="Name the node with -H NAME, not its address."
        )
    return context.name


def _manifest(context: Context, resolver: ConfigResolver) -> Manifest:
    return find_manifest(resolver.site, ManifestRequest(text=context.values["manifest"]))


def _request(context: Context) -> VerbRequest:
    return VerbRequest(
        text=context.values["manifest"],
        host=_host(context),
        site=str(context.root),
        skip_preflight=context.options.skip_preflight,
    )


def _own_node(outcome: RunOutcome) -> NodeOutcome:
    """Return what became of our one node.

    Raises:
        PhaseFailedError: It is not well.
    """
    node = next((one for one in outcome.nodes if one.name == NAME), None)
    if not outcome.success or node is None:
        why = outcome.error or (node.error if node is not None else None) or "it says no more"
        raise PhaseFailedError(f"{outcome.verb.value} of {NAME} failed: {why}")
    return node


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckConfig:
    """Looks whether the site says where guests fetch their specs, and chooses what the guest is."""

    async def run(self, context: Context) -> ActionResult:
        """Choose a spec, a size and an image."""
        site = context.needed_site
        defaults = site.settings.defaults
        server = defaults.spec_server or defaults.server_url
        if server is None:
            raise PhaseFailedError(
                f"{site.root}/site.yaml names no `spec_server`.",
                remedy=f"Write `spec_server: https://ADDRESS:{DEFAULT_PORT}` below `defaults`, with an "
                "address of this machine that guests reach.",
            )
        node, posture = _guest(context)
        document = {"schema_version": 2, "name": NAME, **posture, "execution": {"default_mode": "pull"}}
        document["nodes"] = [{**node, "name": NAME, "type": "vm"}]
        updates = {"manifest": json.dumps(document), "spec_server": server}
        message = f"{NAME} is to fetch the spec '{node['spec']}' from {server}."
        return ActionResult(success=True, message=message, context_updates=updates)


def _guest(context: Context) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the guest is, and its posture: the one guest of the env that is named, else a small one."""
    site, options = context.needed_site, context.options
    if options.env is None:
        small = {
            "preset": _choose(site.presets, _PRESETS, "presets"),
            "spec": _choose(site.specs, _SPECS, "specs"),
            "image": (*options.templates, _IMAGE)[0],
            "vmid": _vm_id(context),
        }
        return small, {}
    env = ConfigResolver(site.root).env(options.env)
    entries = env.places.data.get("vms") or []
    if len(entries) != 1:
        raise UsageError(
            f"The env '{env.name}' has {len(entries)} guests, and this scenario makes one.",
            remedy=f"Name an env with one guest, or use: stackyard apply env:{env.name}",
        )
    guest = {key: value for key, value in entries[0].items() if key not in ("key", "node", "vm_id", "name")}
    guest.setdefault("spec", _choose(site.specs, _SPECS, "specs"))
    if options.templates:
        guest["image"] = options.templates[0]
    said = entries[0].get("vm_id") or entries[0].get("vmid") or env.model.vmid_base
    guest["vmid"] = _vm_id(context) if options.vm_ids or said is None else said
    return guest, {"posture": env.model.posture}


def _vm_id(context: Context) -> int:
    given = context.options.vm_ids
    if unknown := [name for name in given if name not in (NAME, *_OTHER_NAMES)]:
        raise UsageError(f"There is no guest `{unknown[0]}` in this scenario: write --vm-id {NAME}=99990.")
    return next(iter(given.values()), _VM_ID)


def _choose(known: dict[str, Any], wanted: tuple[str, ...], kind: str) -> str:
    if not known:
        raise PhaseFailedError(f"The site has no {kind}.", remedy=f"Write one into `{kind}`.")
    return next((name for name in wanted if name in known), sorted(known)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class StartServer:
    """Starts the controller that the site names, here and for this run; one that runs already is used."""

    async def run(self, context: Context) -> ActionResult:
        """Start it."""
        address = urlsplit(context.values["spec_server"])
        spec = parse_json(context.values["manifest"])["nodes"][0]["spec"]
        options = ControllerOptions(
            site=context.root,
            port=address.port or DEFAULT_PORT,
            names=(address.hostname or "localhost",),
            guests={NAME: spec},
        )
        stack = contextlib.AsyncExitStack()
        try:
            running = await stack.enter_async_context(controller(options, emit=context.emit))
        except AddressInUseError:
            return ActionResult(success=True, message=f"A server listens on port {options.port} already.")
        context.values[_SERVER] = stack
        return ActionResult(success=True, message=f"The controller listens on port {running.port}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsureImage:
    """Looks whether the node has the image, and puts that of the release there where not."""

    async def run(self, context: Context) -> ActionResult:
        """Look at the images of the node, and bring what is missing."""
        resolver = _resolver(context)
        subject = subject_of(resolver, _host(context), _manifest(context, resolver))
        report = await inspect(subject, emit=context.emit)
        images = next((check for check in report.checks if check.name == "images"), None)
        if images is None or images.status is not Status.FAIL:
            return ActionResult(success=True, message=images.text if images is not None else "")
        if not context.options.templates:
            raise PreflightError(f"{_host(context)} does not have the image {_IMAGE}.", images.findings)
        downloaded = await DownloadImages().run(context)
        context.values.update(downloaded.context_updates)
        return await InstallImages().run(context)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionVm:
    """Makes the guest, through the operator: plan, apply, address, SSH, and its spec fetched and applied."""

    async def run(self, context: Context) -> ActionResult:
        """Make it."""
        node = _own_node(await run_verb(Verb.CREATE, _request(context), context.emit))
        updates = {
            "vm_id": node.vm_id,
            "vm_ip": node.address,
            f"{NAME}_vm_id": node.vm_id,
            f"{NAME}_ip": node.address,
            "provisioned_vms": [{"name": NAME, "vmid": node.vm_id}],
        }
        message = f"{NAME} has id {node.vm_id} and address {node.address}."
        return ActionResult(success=True, message=message, context_updates=updates)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySsh:
    """Logs in to the guest and compares it with its spec: users, packages, services."""

    async def run(self, context: Context) -> ActionResult:
        """Look."""
        node = _own_node(await run_verb(Verb.VERIFY, _request(context), context.emit))
        looked = ", ".join(phase.name for phase in node.phases)
        return ActionResult(success=True, message=f"{NAME} is as its spec says ({looked}).")


@contextlib.asynccontextmanager
async def _inside(context: Context) -> AsyncIterator[ssh.Shell]:
    """Log in to the guest."""
    resolver, host = _resolver(context), _host(context)
    manifest = _manifest(context, resolver)
    guest = next(one for one in resolve_manifest(resolver, manifest, host).desired.guests if one.name == NAME)
    node = next(one for one in manifest.nodes if one.name == NAME)
    async with guest_context(resolver, manifest, host) as access:
        ways = access.hosts(node, guest, str(context.values["vm_ip"]))
        async with log_in(ways, access) as shell:
            yield shell


async def _run_script(context: Context, script: str, what: str) -> str:
    async with _inside(context) as shell:
        ended = await run_as_root(shell, script, timeout_s=_LOOK_S)
    if ended.status != 0:
        raise PhaseFailedError(
            context.redactor(f"{what}: {ended.output.strip()[-500:] or 'it says nothing'}")
        )
    return ended.output


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyEnv:
    """Looks whether the first boot left the settings with which a guest finds its server."""

    async def run(self, context: Context) -> ActionResult:
        """Compare the settings of the guest with what the site says."""
        said = await _run_script(
            context, f"grep -v '^STACKYARD_TOKEN=' {SETTINGS_PATH}", "The guest has no settings"
        )
        known = dict(line.partition("=")[::2] for line in said.splitlines() if "=" in line)
        wanted = {"STACKYARD_SERVER": context.values["spec_server"].rstrip("/"), "STACKYARD_IDENTITY": NAME}
        wrong = {key: known.get(key, "nothing") for key, value in wanted.items() if known.get(key) != value}
        if wrong:
            told = ", ".join(f"{key} is {value}, and should be {wanted[key]}" for key, value in wrong.items())
            raise PhaseFailedError(f"The settings of the guest are wrong: {told}.")
        return ActionResult(success=True, message=f"{SETTINGS_PATH} names {wanted['STACKYARD_SERVER']}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyServer:
    """Lets the guest ask the server whether it is well."""

    async def run(self, context: Context) -> ActionResult:
        """Ask from inside of the guest, with the key of the server that the guest has pinned."""
        script = _HEALTH.format(settings=SETTINGS_PATH)
        said = await _run_script(context, script, "The guest does not reach the server")
        if '"ok"' not in said:
            raise PhaseFailedError(f"The server answers the guest with: {said.strip()[-200:]}")
        return ActionResult(success=True, message="The guest reaches the server.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DestroyVm:
    """Takes the guest away again, whatever became of it."""

    async def run(self, context: Context) -> ActionResult:
        """Destroy what there is."""
        if "manifest" not in context.values:
            return ActionResult(success=True, message="Nothing was created.")
        outcome = await run_verb(Verb.DESTROY, _request(context), context.emit)
        if not outcome.success:
            raise PhaseFailedError(f"{NAME} was not destroyed: {outcome.error or 'it says no more'}")
        return ActionResult(success=True, message=f"{NAME} is no more.")


@dataclass(frozen=True, slots=True, kw_only=True)
class StopServer:
    """Stops the controller that this run started."""

    async def run(self, context: Context) -> ActionResult:
        """Stop it."""
        stack = context.values.pop(_SERVER, None)
        if stack is None:
            return ActionResult(success=True, message="None was started.")
        await stack.aclose()
        return ActionResult(success=True, message="The controller is stopped.")
