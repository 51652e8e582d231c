"""The Talos clusters of a repository as targets: each is the stack of the code that is generated for it."""

from __future__ import annotations

import asyncio
import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Severity
from stackyard.base.errors import InvalidInputError, Location, UsageError
from stackyard.clients import proxmox
from stackyard.path.clusters.configure import check_current
from stackyard.path.clusters.credentials import read_engine_secrets
from stackyard.path.clusters.images import register_planned
from stackyard.path.clusters.keys import make_keyring
from stackyard.path.clusters.places import in_cluster
from stackyard.path.stacks.backend import DEFAULT_WORKSPACE
from stackyard.path.stacks.model import StackModel
from stackyard.path.stacks.source import resolve_stack
from stackyard.path.target import Target
from stackyard.provider.problems import NEWER_NAME
from stackyard.render.cluster.values import collect_secrets
from stackyard.sources.cluster.kind import CLUSTER
from stackyard.sources.cluster.load import open_cluster
from stackyard.sources.cluster.names import CLUSTERS, find_cluster, find_clusters
from stackyard.sources.cluster.validate import refuse_shared
from stackyard.sources.cluster.vms import build_desired, list_addresses
from stackyard.sources.stacks.folders import open_folders
from stackyard.sources.stacks.isolation import check_isolation
from stackyard.sources.stacks.repository import find_marked_root
from stackyard.sources.stacks.store import store_of

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.engine.failures import Finding
    from stackyard.path.clusters.credentials import EngineSecrets
    from stackyard.path.stacks.arguments import PassedArguments
    from stackyard.path.stacks.source import ResolvedStack
    from stackyard.sources.cluster.load import OpenedCluster
    from stackyard.sources.cluster.model import Cluster
    from stackyard.sources.stacks.isolation import Isolation
    from stackyard.sources.stacks.repository import StackRepository
    from stackyard.sources.store import ChosenStore

__all__ = ["CODE_FOLDER", "ClusterSource", "StaleCodeError"]

CODE_FOLDER = "infrastructure/tofu"
# Generated code keeps it: a state of the original has its images under this name.
_FORMER = "proxmox_virtual_environment_download_file "
_TOKEN = ("proxmox_api_token_id", "proxmox_api_token_secret")


class StaleCodeError(InvalidInputError):
    """The generated code of a cluster is older than its input, or was edited: nothing is planned from it."""

    code = "E-CLUSTER-STALE"
    summary = "The generated code is not up to date"
    default_remedy = "Run `stackyard cluster configure`."


@dataclass(frozen=True, slots=True)
class ClusterSource:
    """The clusters of one repository.

    Attributes:
        root: The top of the repository.
        repository: The folders of their code, each a stack.
        is_code_current: Whether generated code is refused that is not that of the files of its cluster.
    """

    root: Path
    repository: StackRepository
    is_code_current: bool = True

    @classmethod
    def find(cls, start: Path | None = None) -> ClusterSource:
        """Return the clusters around a folder.

        Raises:
            ClusterNotFoundError: There are none.
            InvalidInputError: Two have one name.
        """
        known = find_clusters(start)
        # Without any, this says where they are looked for.
        first = next(iter(known.values())) if known else find_cluster(None, start)
        root = _find_root(first.folder)
        return cls(root, open_folders(root, {name: one.folder / CODE_FOLDER for name, one in known.items()}))

    @property
    def is_generated(self) -> bool:
        """Whether stackyard writes the code."""
        return True

    @property
    def store(self) -> ChosenStore:
        """Where what runs leave for the next is kept.

        Raises:
            CommittedStoreError: git tracks it, or some of it.
        """
        return store_of(self.repository)

    def folder_of(self, name: str) -> Path:
        """Return the folder of a cluster.

        Raises:
            ClusterNotFoundError: There is none of that name.
        """
        return find_cluster(name, self.root).folder

    def open(self, name: str) -> OpenedCluster:
        """Return a cluster as its files describe it, with everything that is wrong with it.

        Raises:
            ClusterNotFoundError: There is none of that name.
            SecretsLockedError: Its secrets are encrypted for others.
        """
        folder = self.folder_of(name)
        return open_cluster(folder, keyring=make_keyring(folder))

    async def resolve(
        self, name: str, workspace: str = DEFAULT_WORKSPACE, arguments: PassedArguments | None = None
    ) -> ResolvedStack:
        """Return a cluster, with its code as its files describe it now.

        Raises:
            UsageError: There is none of that name, or a workspace is named.
            StaleCodeError: The generated code is not that of its files.
            InvalidInputError: Something is wrong with its files; the error carries every problem.
            SecretsMissingError: The engine needs credentials that are not there.
            SecretsLockedError: No key opens its secrets.
        """
        if workspace != DEFAULT_WORKSPACE:
            raise UsageError("A cluster has no workspaces: each cluster has its own state.")
        opened = await asyncio.to_thread(self.open, name)
        cluster = opened.require()
        await asyncio.to_thread(refuse_shared, cluster, self.root)
        secrets = await asyncio.to_thread(_read_secrets, cluster)
        secrets.require(*(_TOKEN if cluster.proxmox is not None else ()))
        if self.is_code_current:
            await asyncio.to_thread(_require_current, cluster)
        repository = open_folders(self.root, {name: cluster.folder / CODE_FOLDER})
        resolved = await resolve_stack(
            repository,
            repository.find(name),
            Target(kind=CLUSTER, name=name, node=DEFAULT_WORKSPACE),
            own=secrets.environment,
            arguments=arguments,
        )
        return replace(resolved, model=_model_of(opened, cluster, secrets))

    async def reread(self, resolved: ResolvedStack) -> ResolvedStack:
        """Return a cluster as its files are now.

        Raises:
            StackyardError: As for `resolve`.
        """
        source = replace(ClusterSource.find(self.root), is_code_current=self.is_code_current)
        return await source.resolve(resolved.stack.name, arguments=resolved.arguments)

    def check_isolation(self) -> Isolation:
        """Return what is wrong with where clusters keep their states."""
        return check_isolation(self.repository)


def _read_secrets(cluster: Cluster) -> EngineSecrets:
    is_needed = bool(collect_secrets(cluster))
    return read_engine_secrets(cluster.infrastructure, make_keyring(cluster.folder), is_needed=is_needed)


def _require_current(cluster: Cluster) -> None:
    stale = check_current(cluster)
    if stale:
        files = ", ".join(stale)
        raise StaleCodeError(
            f"`cluster configure` would now write other content into {files} of {cluster.infrastructure}: "
            f"the files of {cluster.name} changed, or the generated ones did.",
            where=Location(str(cluster.infrastructure / stale[0])),
        )


def _find_root(folder: Path) -> Path:
    """Return the top of the repository of a cluster: what holds stackyard.yaml, git, or all its clusters."""
    outside_of_git = folder.parent.parent if folder.parent.name == CLUSTERS else folder
    return find_marked_root(folder) or outside_of_git


def _model_of(opened: OpenedCluster, cluster: Cluster, secrets: EngineSecrets) -> StackModel | None:
    if cluster.proxmox is None:
        return None
    token = "=".join(secrets.values[name] for name in _TOKEN)
    return StackModel(
        desired=build_desired(cluster),
        connection=proxmox.Connection(
            endpoint=cluster.proxmox.api_url,
            credentials=proxmox.Token(text=token),
            trust=proxmox.Trust(verify=not cluster.proxmox.is_insecure),
        ),
        addresses=list_addresses(cluster),
        locate=in_cluster(opened),
        prepare=functools.partial(register_planned, cluster),
        is_about_us=_is_about_names,
    )


def _is_about_names(finding: Finding) -> bool:
    """Return whether a warning is about the former name of a resource, which states of the original have."""
    is_warning = finding.severity is Severity.WARNING
    return is_warning and finding.summary == NEWER_NAME and finding.detail.startswith(_FORMER)
