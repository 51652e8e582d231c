"""What a Talos machine gives its administrators: a kubeconfig, and a talosconfig."""

from __future__ import annotations

import base64
import gzip
import io
import tarfile
from typing import TYPE_CHECKING, Any

import yaml

from pvelab.talos.pki import Period, authority_from, issue

if TYPE_CHECKING:
    from pvelab.talos.configuration import MachineConfig
    from pvelab.talos.machine import TalosMachine

__all__ = ["make_kubeconfig", "make_kubeconfig_archive", "make_talosconfig"]

_YEAR_S = 365 * 24 * 3600


def make_kubeconfig_archive(machine: TalosMachine) -> bytes:
    """Return the kubeconfig as Talos streams it: a tar with neither padding nor an end, in gzip."""
    content = make_kubeconfig(machine)
    header = tarfile.TarInfo("kubeconfig")
    header.size, header.mode = len(content), 0o644
    header.mtime = int(machine.world.clock.now())
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb") as stream:
        stream.write(header.tobuf(tarfile.USTAR_FORMAT) + content)
    return packed.getvalue()


def make_kubeconfig(machine: TalosMachine) -> bytes:
    """Return a kubeconfig with a new client certificate, from the configuration alone."""
    cluster = {} if machine.config is None else machine.config.cluster
    name = str(cluster.get("clusterName") or "talos-default")
    ca = cluster.get("ca") or {}
    authority = authority_from(ca.get("crt", ""), ca.get("key", ""))
    user: dict[str, Any] = {}
    if authority is not None and authority.key_pem:
        pair = issue(
            authority,
            name="admin",
            organizations=["system:masters"],
            period=Period(life_s=_YEAR_S),
            elliptic=True,
        )
        user = {
            "client-certificate-data": base64.b64encode(pair.certificate_pem).decode(),
            "client-key-data": base64.b64encode(pair.key_pem).decode(),
        }
    endpoint = (cluster.get("controlPlane") or {}).get("endpoint")
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": name, "cluster": {"server": endpoint, "certificate-authority-data": ca.get("crt", "")}}
        ],
        "users": [{"name": f"admin@{name}", "user": user}],
        "contexts": [
            {
                "name": f"admin@{name}",
                "context": {"cluster": name, "namespace": "default", "user": f"admin@{name}"},
            }
        ],
        "current-context": f"admin@{name}",
    }
    return yaml.safe_dump(document, sort_keys=False).encode()


def make_talosconfig(
    config: MachineConfig | None, roles: list[str], life_s: float
) -> dict[str, bytes] | None:
    """Return a new client certificate and a talosconfig with it, None on a machine that cannot sign."""
    authority = None if config is None else config.authority
    if config is None or authority is None or not authority.key_pem:
        return None
    pair = issue(authority, organizations=roles, period=Period(life_s=life_s))
    name = str(config.cluster.get("clusterName") or "talos-default")
    key = pair.key_pem.replace(b" PRIVATE KEY", b" ED25519 PRIVATE KEY")
    context = {
        "endpoints": [],
        **{
            part: base64.b64encode(value).decode()
            for part, value in (
                ("ca", authority.certificate_pem),
                ("crt", pair.certificate_pem),
                ("key", key),
            )
        },
    }
    document = {"context": name, "contexts": {name: context}}
    return {
        "ca": authority.certificate_pem,
        "crt": pair.certificate_pem,
        "key": key,
        "talosconfig": yaml.safe_dump(document, sort_keys=False).encode(),
    }
