"""The parts of `bootstrap.yaml`: the network plugin, charts, and Flux with the repository that it applies."""

from typing import Annotated, Any

from pydantic import Field

from stackyard.desired.values import Line, Many, Value

__all__ = ["ChartFields", "FluxFields", "LayerFields", "NetworkFields", "OperatorFields"]

_LABEL = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
# A release is part of the names of what its chart makes, and helm takes no longer one.
ReleaseName = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,51}[a-z0-9])?$")]
Label = Annotated[str, Field(pattern=_LABEL)]
# The name of a field, and never the value of one.
FieldName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Controller = Annotated[str, Field(pattern=r"^[a-z][a-z-]{0,60}-controller$")]


class NetworkFields(Value):
    """The network plugin: Cilium, which `helm` renders, or manifests of your own."""

    manifests: Annotated[Line | None, Field(description="A file with the manifests of any plugin.")] = None
    cilium_version: Annotated[
        Line | None,
        Field(description="The version of Cilium's chart; 1.18.4 when absent."),
    ] = None
    cilium_values: Annotated[
        dict[str, Any] | None, Field(description="Values of Cilium's chart; they win over those for Talos.")
    ] = None


class ChartFields(Value):
    """A Helm chart that `helm` renders, and that is applied before Flux."""

    name: Annotated[ReleaseName | None, Field(description="The name of the release.")] = None
    chart: Annotated[
        Line | None,
        Field(description="The chart: its name in `repository`, an `oci://` address, or a folder `./...`."),
    ] = None
    repository: Annotated[Line | None, Field(description="The address of the repository of charts.")] = None
    version: Annotated[Line | None, Field(description="The version; a folder has none.")] = None
    namespace: Annotated[
        Label, Field(description="The namespace of its objects, which is created if it does not exist.")
    ] = "default"
    values: Annotated[dict[str, Any] | None, Field(description="Values of the chart; none is secret.")] = None
    values_file: Annotated[
        Line | None, Field(description="A file with more values, in clear or encrypted; `values` win.")
    ] = None
    after: Annotated[Many[ReleaseName], Field(description="The charts that come before it.")] = ()


class LayerFields(Value):
    """A part of the repository that Flux applies as a whole, after the parts that it names."""

    name: Annotated[Label, Field(description="Its name.")]
    path: Annotated[Line, Field(description="The folder in the repository.")]
    after: Annotated[Many[Line], Field(description="The layers that must be ready before it.")] = ()


class OperatorFields(Value):
    """The flux-operator, which installs Flux from one object and keeps it up to date."""

    manifests: Annotated[Line | None, Field(description="A file with the manifests of the operator.")] = None
    version: Annotated[
        Line | None, Field(description="The version of the operator's chart, which `helm` renders.")
    ] = None


class FluxFields(Value):
    """Flux, and the repository that it applies."""

    manifests: Annotated[
        Line | None,
        Field(description="A file with Flux's manifests; else `flux install --export` makes them."),
    ] = None
    operator: Annotated[
        OperatorFields | None, Field(description="Let the flux-operator install Flux instead.")
    ] = None
    version: Annotated[
        Line | None,
        Field(description="The version of Flux: `v2.7.3` for the program, `2.7.x` for the operator."),
    ] = None
    components: Annotated[
        Many[Controller], Field(description="The controllers; Flux's default ones when absent.")
    ] = ()
    url: Annotated[
        Line | None, Field(description="The repository: `ssh://`, `https://`, or `git@host:path`.")
    ] = None
    branch: Annotated[Line | None, Field(description="The branch; `main` without tag and commit.")] = None
    tag: Annotated[Line | None, Field(description="The tag to stay at.")] = None
    commit: Annotated[Commit | None, Field(description="The commit to stay at, with all 40 digits.")] = None
    deploy_key: Annotated[
        Line | None, Field(description="The file of the private deploy key, in clear or encrypted.")
    ] = None
    known_hosts: Annotated[
        Line | None, Field(description="A file with the host keys of the forge, as OpenSSH writes them.")
    ] = None
    username: Annotated[
        Line | None, Field(description="The user that goes with the token; `git` when absent.")
    ] = None
    token: Annotated[
        FieldName | None,
        Field(
            description="The secret field with the token for `https://`. When absent, `git_token` or "
            "`github_token` if the cluster has one."
        ),
    ] = None
    authority: Annotated[
        Line | None, Field(description="A file with the CA certificate of the forge, in PEM.")
    ] = None
    folder: Annotated[Line, Field(description="The folder of the usual layers in the repository.")] = (
        "kubernetes"
    )
    layers: Annotated[
        Many[LayerFields] | None, Field(description="Your own layers instead of the usual ones.")
    ] = None
