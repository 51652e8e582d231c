"""`postures/*.yaml`: how open a guest is; the older flat form and the nested one."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated

from pydantic import Strict

from stackyard.sources.site.entities.values import Entity, Line, Many, Port, RootLogin, YesNo

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AuthMethod", "FlatPosture", "NestedPosture", "Posture", "posture_model"]


class AuthMethod(enum.StrEnum):
    """How a guest proves itself when it asks for its spec."""

    NETWORK = "network"
    SITE_TOKEN = "site_token"  # noqa: S105 - the name of a method
    NODE_TOKEN = "node_token"  # noqa: S105 - the name of a method


class FlatPosture(Entity):
    """A posture as the first version of the format wrote it."""

    ssh_port: Port | None = None
    ssh_permit_root_login: RootLogin | None = None
    ssh_password_authentication: YesNo | None = None
    sudo_nopasswd: bool | None = None
    fail2ban_enabled: bool | None = None
    packages: Many[Line] = ()


class PostureAuth(Entity):
    """How a guest proves itself."""

    # Strict types would want the enum itself, and files hold words.
    method: Annotated[AuthMethod, Strict(False)]


class PostureSsh(Entity):
    """The SSH server of a guest."""

    port: Port | None = None
    permit_root_login: RootLogin | None = None
    password_authentication: YesNo | None = None


class PostureSudo(Entity):
    """What users with sudo need."""

    nopasswd: bool | None = None


class PostureFail2ban(Entity):
    """Whether addresses that guess passwords are shut out."""

    enabled: bool | None = None


class NestedPosture(Entity):
    """A posture as it is written today."""

    auth: PostureAuth | None = None
    ssh: PostureSsh = PostureSsh()
    sudo: PostureSudo = PostureSudo()
    fail2ban: PostureFail2ban = PostureFail2ban()
    packages: Many[Line] = ()


Posture = FlatPosture | NestedPosture


def posture_model(data: Mapping[str, object]) -> type[Posture]:
    """Return which of the two forms a file is in: whichever it has more keys of."""
    flat = sum(key in FlatPosture.model_fields for key in data)
    nested = sum(key in NestedPosture.model_fields for key in data)
    return NestedPosture if nested > flat else FlatPosture
