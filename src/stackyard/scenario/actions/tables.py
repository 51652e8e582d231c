"""The actions of scenarios, in one table for each module that has some.

A module is imported when one of its actions runs: what some of them need takes a second to load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackyard.scenario.model import Action, ActionTable

__all__ = [
    "api_token",
    "bootstrap",
    "host_file",
    "images",
    "install",
    "node_file",
    "packer",
    "setup",
    "spec_vm",
    "users",
]


def api_token() -> ActionTable:
    """Return the actions of `api_token`."""
    from stackyard.scenario.actions.api_token import CreateApiToken  # lazy: see above

    return _table(CreateApiToken)


def bootstrap() -> ActionTable:
    """Return the actions of `bootstrap`."""
    from stackyard.scenario.actions.bootstrap import RunBootstrap, VerifyInstall  # lazy: see above

    return _table(RunBootstrap, VerifyInstall)


def host_file() -> ActionTable:
    """Return the actions of `host_file`."""
    from stackyard.scenario.actions.host_file import GenerateHostConfig  # lazy: see above

    return _table(GenerateHostConfig)


def images() -> ActionTable:
    """Return the actions of `images`."""
    from stackyard.scenario.actions.images import DownloadImages, InstallImages  # lazy: see above

    return _table(DownloadImages, InstallImages)


def install() -> ActionTable:
    """Return the actions of `install`."""
    from stackyard.scenario.actions.install import EnsurePve  # lazy: see above

    return _table(EnsurePve)


def node_file() -> ActionTable:
    """Return the actions of `node_file`."""
    from stackyard.scenario.actions.node_file import GenerateNodeConfig  # lazy: see above

    return _table(GenerateNodeConfig)


def packer() -> ActionTable:
    """Return the actions of `packer`."""
    from stackyard.scenario.actions.packer import (  # lazy: see above
        BuildImages,
        FetchImages,
        PublishImages,
        SyncPacker,
    )

    return _table(BuildImages, FetchImages, PublishImages, SyncPacker)


def setup() -> ActionTable:
    """Return the actions of `setup`."""
    from stackyard.scenario.actions.setup import SetupPve  # lazy: see above

    return _table(SetupPve)


def spec_vm() -> ActionTable:
    """Return the actions of `spec_vm`."""
    from stackyard.scenario.actions.spec_vm import (  # lazy: see above
        CheckConfig,
        DestroyVm,
        EnsureImage,
        ProvisionVm,
        StartServer,
        StopServer,
        VerifyEnv,
        VerifyServer,
        VerifySsh,
    )

    return _table(
        CheckConfig,
        DestroyVm,
        EnsureImage,
        ProvisionVm,
        StartServer,
        StopServer,
        VerifyEnv,
        VerifyServer,
        VerifySsh,
    )


def users() -> ActionTable:
    """Return the actions of `users`."""
    from stackyard.scenario.actions.users import CreateUser, VerifyUser  # lazy: see above

    return _table(CreateUser, VerifyUser)


def _table(*actions: type[Action]) -> ActionTable:
    return {action.__name__: action for action in actions}
