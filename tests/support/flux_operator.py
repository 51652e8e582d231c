"""What the flux-operator does on a cluster of the lab: it installs Flux once there is a FluxInstance.

It acts while its own Deployment is rolled out, applies the manifests of Flux under its own name, and sets
the condition of the instance once Flux's controllers have rolled out, as its public documentation describes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from pvelab.kubernetes import RunningKubernetes
from pvelab.kubernetes.client import ControllerClient
from pvelab.kubernetes.problems import KubeStatusError
from stackyard.base.backoff import Backoff
from stackyard.clients.kubernetes import KubernetesObject

__all__ = ["OPERATOR", "run_flux_operator"]

OPERATOR = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: fluxinstances.fluxcd.controlplane.io}
spec:
  group: fluxcd.controlplane.io
  scope: Namespaced
  names: {kind: FluxInstance, listKind: FluxInstanceList, plural: fluxinstances, singular: fluxinstance}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [distribution]
              properties:
                distribution:
                  type: object
                  required: [version, registry]
                  properties: {version: {type: string}, registry: {type: string}}
                components: {type: array, items: {type: string}}
            status: {type: object, x-kubernetes-preserve-unknown-fields: true}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: flux-operator}
rules: []
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: flux-operator}
spec:
  replicas: 1
  selector: {matchLabels: {app: flux-operator}}
  template:
    metadata: {labels: {app: flux-operator}}
    spec: {containers: [{name: manager, image: "example.com/flux-operator:v1"}]}
"""
_DEPLOYMENTS = "/apis/apps/v1/namespaces/flux-system/deployments"
_INSTANCE = "/apis/fluxcd.controlplane.io/v1/namespaces/flux-system/fluxinstances/flux"
_AGAIN = Backoff(first_s=0.05, longest_s=0.2)


@contextlib.asynccontextmanager
async def run_flux_operator(
    kube: RunningKubernetes, flux: tuple[KubernetesObject, ...]
) -> AsyncIterator[None]:
    """Run the operator until the end of the block.

    Args:
        kube: The API of the cluster.
        flux: The manifests of Flux that it has.
    """
    async with ControllerClient(kube, "flux-operator") as client:
        acting = asyncio.create_task(_act(client, flux))
        try:
            yield
        finally:
            acting.cancel()
            await asyncio.gather(acting, return_exceptions=True)


async def _act(client: ControllerClient, flux: tuple[KubernetesObject, ...]) -> None:
    for pause_s in _AGAIN:
        # The API may be busy, or a definition not served yet: the next round comes soon.
        with contextlib.suppress(KubeStatusError):
            if await client.find(_INSTANCE) and await _is_running(client, "flux-operator"):
                await _install(client, flux)
        await asyncio.sleep(pause_s)


async def _install(client: ControllerClient, flux: tuple[KubernetesObject, ...]) -> None:
    for obj in flux:
        await client.apply(_path(obj), obj)
    names = [obj["metadata"]["name"] for obj in flux if obj["kind"] == "Deployment"]
    is_ready = all([await _is_running(client, name) for name in names])
    row = {
        "type": "Ready",
        "status": "True" if is_ready else "False",
        "reason": "ReconciliationSucceeded" if is_ready else "Progressing",
        "message": "Reconciliation finished" if is_ready else "Reconciliation in progress",
        "observedGeneration": (await client.find(_INSTANCE) or {})["metadata"]["generation"],
    }
    before = ((await client.find(_INSTANCE) or {}).get("status") or {}).get("conditions")
    if before != [row]:
        await client.set_status(_INSTANCE, {"conditions": [row]})


async def _is_running(client: ControllerClient, name: str) -> bool:
    found = await client.find(f"{_DEPLOYMENTS}/{name}")
    return bool(found and (found.get("status") or {}).get("readyReplicas"))


def _path(obj: KubernetesObject) -> str:
    name: Any = obj["metadata"]["name"]
    return {
        "Namespace": f"/api/v1/namespaces/{name}",
        "CustomResourceDefinition": f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}",
        "Deployment": f"{_DEPLOYMENTS}/{name}",
    }[str(obj["kind"])]
