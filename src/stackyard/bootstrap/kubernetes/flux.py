"""Flux: its controllers, the Git source, and the Kustomizations in the order that they need."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base import process
from stackyard.base.errors import InvalidInputError
from stackyard.base.visible import on_one_line
from stackyard.bootstrap.kubernetes.secrets import SecretValues
from stackyard.clients.kubernetes import ObjectReference, parse_manifests, refer_to

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from stackyard.clients.kubernetes import KubernetesObject

__all__ = [
    "LAYERS",
    "FluxSettingsError",
    "GitAccess",
    "GitSource",
    "KustomizationLayer",
    "export_flux",
    "list_flux_objects",
    "make_flux_instance",
    "make_git_repository",
    "make_git_secret",
    "make_kustomizations",
    "make_layers",
]

NAMESPACE = "flux-system"
_SOURCE = "source.toolkit.fluxcd.io/v1"
_KUSTOMIZE = "kustomize.toolkit.fluxcd.io/v1"
_EXPORTED_S = 120.0
# `git@host:path`, as git writes it and Flux does not read it.
_SCP = re.compile(r"(?P<user>[\w.-]+@)(?P<host>[\w.-]+):(?!//)(?P<path>.+)")
_INTERVAL = re.compile(r"(\d+(\.\d+)?(ms|s|m|h))+")


class FluxSettingsError(InvalidInputError):
    """The Git source or the Kustomizations of a cluster cannot work as they are given."""

    code = "E-CLUSTER-FLUX"
    summary = "The settings of Flux cannot work"
    default_remedy = "Correct every setting listed; nothing was changed."


@dataclass(frozen=True, slots=True, kw_only=True)
class GitAccess:
    """What opens a Git repository, on any forge; what is secret is not in its repr.

    Attributes:
        private_key: The private half of a deploy key, for `ssh://` addresses.
        public_key: The public half, where it is known.
        known_hosts: The host keys of the forge, as OpenSSH writes them.
        username: The name that goes with a token; forges take any.
        token: A token, for `https://` addresses.
        authority_pem: The authority of the forge's certificate, where it is not one of the system.
    """

    private_key: str = field(default="", repr=False)
    public_key: str = ""
    known_hosts: str = ""
    username: str = "git"
    token: str = field(default="", repr=False)
    authority_pem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSource:
    """The repository that Flux applies.

    Attributes:
        url: Its address: `ssh://`, `https://`, or `git@host:path`.
        branch: The branch, unless a tag or commit is named.
        tag: The tag to stay at.
        commit: The commit to stay at.
        access: What opens it; None for a public one.
        interval: How often Flux looks.
        name: The name of the objects in the cluster.
    """

    url: str
    branch: str = "main"
    tag: str = ""
    commit: str = ""
    access: GitAccess | None = None
    interval: str = "1m0s"
    name: str = "flux-system"

    @property
    def address(self) -> str:
        """The address as Flux reads it."""
        if match := _SCP.fullmatch(self.url):
            return f"ssh://{match['user']}{match['host']}/{match['path'].lstrip('/')}"
        return self.url

    def check(self) -> None:
        """Refuse what cannot work.

        Raises:
            FluxSettingsError: Something is missing or contradicts itself; all of it is listed.
        """
        access, wrong = self.access or GitAccess(), []
        is_ssh = self.address.startswith("ssh://")
        if not is_ssh and not self.address.startswith(("https://", "http://")):
            wrong.append(f"the address {on_one_line(self.url)!r} is neither ssh:// nor https://")
        if is_ssh and not access.private_key.strip():
            wrong.append("an ssh:// address needs a deploy key")
        if is_ssh and not access.known_hosts.strip():
            wrong.append("an ssh:// address needs the host keys of the forge (known_hosts)")
        if not is_ssh and access.private_key:
            wrong.append("a deploy key opens ssh:// addresses only")
        if self.address.startswith("http://") and access.token:
            wrong.append("a token must not be sent over http://")
        if not _INTERVAL.fullmatch(self.interval):
            wrong.append(f"the interval {on_one_line(self.interval)!r} is not a duration such as 10m")
        if self.tag and self.commit:
            wrong.append("a tag and a commit are both named")
        if wrong:
            raise FluxSettingsError(f"The Git source of Flux cannot work: {'; '.join(wrong)}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class KustomizationLayer:
    """A part of the repository that Flux applies as a whole.

    Attributes:
        name: Its name.
        path: The folder in the repository.
        after: The layers that must be ready before it.
        interval: How often Flux applies it again.
        timeout: How long its objects may take to become ready.
    """

    name: str
    path: str
    after: tuple[str, ...] = ()
    interval: str = "10m0s"
    timeout: str = "5m0s"


LAYERS = ("infrastructure-controllers", "infrastructure-configs", "apps")


async def export_flux(flux: Path, *, components: Iterable[str] = ()) -> tuple[KubernetesObject, ...]:
    """Return the manifests of Flux's controllers, as `flux install --export` writes them.

    Args:
        flux: The program.
        components: The controllers; none takes the default ones.

    Raises:
        ProcessFailedError: It fails, with its words.
    """
    chosen = ",".join(components)
    argv = (str(flux), "install", "--export", *((f"--components={chosen}",) if chosen else ()))
    command = process.Command(argv=argv, env=process.environment(), timeout_s=_EXPORTED_S)
    completed = await process.run(command)
    return parse_manifests(completed.stdout, "`flux install --export`")


def make_flux_instance(
    *, version: str = "2.x", registry: str = "ghcr.io/fluxcd", components: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the object from which the flux-operator installs Flux; its own manifests come from the user."""
    chosen = components or ("source-controller", "kustomize-controller", "helm-controller")
    return {
        "apiVersion": "fluxcd.controlplane.io/v1",
        "kind": "FluxInstance",
        "metadata": {"name": "flux", "namespace": NAMESPACE},
        "spec": {
            "distribution": {"version": version, "registry": registry},
            "components": list(chosen),
        },
    }


def make_git_secret(source: GitSource) -> SecretValues | None:
    """Return the secret that opens the repository, None for a public one."""
    access = source.access
    if access is None:
        return None
    values: dict[str, str] = {}
    if source.address.startswith("ssh://"):
        values["identity"] = access.private_key.rstrip() + "\n"
        values["known_hosts"] = access.known_hosts.rstrip() + "\n"
        if access.public_key:
            values["identity.pub"] = access.public_key
    else:
        values |= {"username": access.username, "password": access.token}
        if access.authority_pem:
            values["ca.crt"] = access.authority_pem
    return SecretValues(namespace=NAMESPACE, name=source.name, values=values)


def make_git_repository(source: GitSource) -> dict[str, Any]:
    """Return the object that lets Flux fetch the repository.

    Raises:
        FluxSettingsError: The source cannot work.
    """
    source.check()
    pinned = {"tag": source.tag, "commit": source.commit}
    reference = {key: value for key, value in pinned.items() if value} or {"branch": source.branch}
    spec: dict[str, Any] = {"url": source.address, "interval": source.interval, "ref": reference}
    if source.access is not None:
        spec["secretRef"] = {"name": source.name}
    return _make(_SOURCE, "GitRepository", source.name, spec)


def make_kustomizations(
    source: GitSource, layers: tuple[KustomizationLayer, ...], *, decryption: str = "sops-age"
) -> tuple[dict[str, Any], ...]:
    """Return one Kustomization for each layer.

    Args:
        source: The repository.
        layers: The layers.
        decryption: The secret with the age key of the repository; empty decrypts nothing.

    Raises:
        FluxSettingsError: A layer is named twice, or waits for one that does not exist or for itself.
    """
    _check_layers(layers)
    return tuple(_make_kustomization(source, layer, decryption) for layer in layers)


def make_layers(folder: str) -> tuple[KustomizationLayer, ...]:
    """Return the usual layers below a folder of the repository, each after the one before."""
    found: list[KustomizationLayer] = []
    for name in LAYERS:
        after = (found[-1].name,) if found else ()
        path = "/".join(("", folder.strip("./"), name.replace("infrastructure-", "infrastructure/"))).lstrip(
            "/"
        )
        found.append(KustomizationLayer(name=name, path=f"./{path}", after=after))
    return tuple(found)


def list_flux_objects(objects: Iterable[KubernetesObject]) -> tuple[ObjectReference, ...]:
    """Return the objects whose conditions say whether everything is reconciled, the source first."""
    order = {"GitRepository": 0, "Kustomization": 1}
    found = [refer_to(obj) for obj in objects if obj.get("kind") in order]
    return tuple(sorted(found, key=lambda reference: order[reference.kind]))


def _make_kustomization(source: GitSource, layer: KustomizationLayer, decryption: str) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "interval": layer.interval,
        "timeout": layer.timeout,
        "path": layer.path,
        "prune": True,
        "wait": True,
        "sourceRef": {"kind": "GitRepository", "name": source.name},
    }
    if layer.after:
        spec["dependsOn"] = [{"name": name} for name in layer.after]
    if decryption:
        spec["decryption"] = {"provider": "sops", "secretRef": {"name": decryption}}
    return _make(_KUSTOMIZE, "Kustomization", layer.name, spec)


def _make(api_version: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _check_layers(layers: tuple[KustomizationLayer, ...]) -> None:
    wrong: list[str] = []
    names: list[str] = []
    for layer in layers:
        if layer.name in names:
            wrong.append(f"the layer {layer.name} is there twice")
        wrong += [
            f"the layer {layer.name} waits for {name}, which does not come before it"
            for name in layer.after
            if name not in names
        ]
        if layer.path.startswith("/") or ".." in layer.path.split("/"):
            wrong.append(f"the path {on_one_line(layer.path)} of {layer.name} leads out of the repository")
        names.append(layer.name)
    if wrong or not layers:
        said = "; ".join(wrong) or "there is none"
        raise FluxSettingsError(f"The layers of Flux cannot work: {said}.")
