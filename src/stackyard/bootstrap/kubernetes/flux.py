"""Flux: its controllers, the Git source, and the Kustomizations in the order that they need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base import process
from stackyard.base.errors import InvalidInputError
from stackyard.base.visible import on_one_line
from stackyard.bootstrap.kubernetes.git_source import FluxSettingsError, GitSource
from stackyard.bootstrap.kubernetes.secrets import SecretValues
from stackyard.clients.kubernetes import ObjectReference, parse_manifests, refer_to

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from stackyard.clients.kubernetes import KubernetesObject

__all__ = [
    "LAYERS",
    "FluxMissingError",
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


class FluxMissingError(InvalidInputError):
    """Nothing says where the manifests of Flux come from, and there is no program that has them."""

    code = "E-CLUSTER-FLUX-MISSING"
    summary = "The manifests of Flux cannot be made"
    default_remedy = (
        "Put `flux` on PATH, or give `flux.manifests` or `flux.operator` in bootstrap.yaml; "
        "nothing was changed."
    )


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


async def export_flux(
    flux: Path | None, *, version: str = "", components: Iterable[str] = ()
) -> tuple[KubernetesObject, ...]:
    """Return the manifests of Flux's controllers, as `flux install --export` writes them.

    Args:
        flux: The program; None if there is none.
        version: The version of the controllers; that of the program when absent.
        components: The controllers; none takes the default ones.

    Raises:
        FluxMissingError: There is no program.
        ProcessFailedError: It fails, with its words.
    """
    if flux is None:
        raise FluxMissingError("Flux needs the program `flux`, which is not installed.")
    chosen = ",".join(components)
    options = [
        *((f"--version={version}",) if version else ()),
        *((f"--components={chosen}",) if chosen else ()),
    ]
    argv = (str(flux), "install", "--export", *options)
    command = process.Command(argv=argv, env=process.environment(), timeout_s=_EXPORTED_S)
    completed = await process.run(command)
    return parse_manifests(completed.stdout, "`flux install --export`")


def make_flux_instance(
    *, version: str = "", registry: str = "ghcr.io/fluxcd", components: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the object from which the flux-operator installs Flux.

    Args:
        version: The version, or a range such as `2.7.x`; the newest of Flux 2 when absent.
        registry: Where the images of the controllers are.
        components: The controllers; the operator's default ones when absent.
    """
    spec: dict[str, Any] = {"distribution": {"version": version or "2.x", "registry": registry}}
    if chosen := list(components):
        spec["components"] = chosen
    return _make("fluxcd.controlplane.io/v1", "FluxInstance", "flux", spec)


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
        if access.token:
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
    spec: dict[str, Any] = {"url": source.address, "interval": source.interval, "ref": source.reference}
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
