"""Preparing the engine in the folder of a cluster, where the credentials of its state are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base import directories, events
from stackyard.base.errors import StackyardError
from stackyard.base.redaction import Redactor
from stackyard.engine import tofu
from stackyard.engine.tools.find import find_engine
from stackyard.engine.version import Flavour
from stackyard.engine.workdir import Limits, Workdir
from stackyard.path.stacks.environment import engine_environment, find_cli_config, plugin_cache
from stackyard.render.cluster.values import collect_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.path.clusters.configure import ConfigureReport
    from stackyard.sources.cluster.model import Cluster

__all__ = ["engine_secrets", "initialise", "needs_init"]

_DOWNLOAD_S = 600.0
# How the engine and its providers know each secret of `secrets.sops.yaml`; the others are not for them.
_VARIABLES = {
    "tfstate_username": "TF_HTTP_USERNAME",
    "tfstate_password": "TF_HTTP_PASSWORD",
    "proxmox_api_token_id": "TF_VAR_proxmox_api_token_id",
    "proxmox_api_token_secret": "TF_VAR_proxmox_api_token_secret",
    "state_encryption_passphrase": "TF_VAR_state_encryption_passphrase",
    "state_encryption_passphrase_previous": "TF_VAR_state_encryption_passphrase_previous",
}


def engine_secrets(secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that carry the values of `secrets.sops.yaml` to the engine."""
    return {_VARIABLES[name]: value for name, value in secrets.items() if name in _VARIABLES and value}


def needs_init(cluster: Cluster, report: ConfigureReport) -> bool:
    """Return whether the engine should be prepared: there are credentials, and its code is new to it."""
    if cluster.state is None or not cluster.secrets.get("tfstate_password"):
        return False
    folder = cluster.infrastructure / "tofu"
    is_new = any(name.startswith("infrastructure/tofu/") for name in report.written)
    # The engine downloads providers last: where they are, it has done all of its work.
    return is_new or not (folder / ".terraform" / "providers").exists()


async def initialise(cluster: Cluster, *, emit: events.Emit = events.ignore) -> str | None:
    """Run `init` in the folder of a cluster; return what went wrong, in the engine's words, or nothing."""
    secrets = collect_secrets(cluster)
    # A user name is no secret, and may be part of every path.
    hidden = Redactor(value for name, value in secrets.items() if name != "tfstate_username")
    only = Flavour.TOFU if "state_encryption_passphrase" in secrets else None
    try:
        engine = (await find_engine(only=only)).engine
        environment = engine_environment()
        environment["TF_PLUGIN_CACHE_DIR"] = str(directories.ensure_private(plugin_cache(environment)))
        workdir = Workdir(
            engine=engine,
            folder=cluster.infrastructure / "tofu",
            environment={**environment, **engine_secrets(secrets)},
            redactor=hidden,
            cli_config=find_cli_config(),
            limits=Limits(work_s=_DOWNLOAD_S),
        )
        with events.step(emit, "init", "Preparing OpenTofu"):
            await tofu.init(workdir, emit=emit)
    except StackyardError as err:
        return hidden(" ".join(one.detail for one in err.diagnostics) or err.detail)
    return None
