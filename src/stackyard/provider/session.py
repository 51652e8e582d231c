"""The configured provider: the door to the API and what the resources share."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.redaction import NOTHING_SECRET, Redactor
from stackyard.clients import proxmox
from stackyard.provider.group_commit import GroupCommit
from stackyard.provider.guest_waits import GuestWaits
from stackyard.provider.journal import Journal
from stackyard.provider.problems import ProviderSettingsError
from stackyard.provider.turns import Turns
from stackyard.provider.vm_ids import VmIds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.clients.ssh.host import Host
    from stackyard.provider.settings import Settings
    from stackyard.provider.values import Object

__all__ = ["Session"]

_NOT_KNOWN = "The provider's own settings depend on something that is not known yet."
_NOT_KNOWN_REMEDY = "Apply what they depend on first, with -target."


class Session:
    """What every operation works with, from the first configuration to the end of serving.

    The engine configures the provider again in every command and for every walk: the same again changes
    nothing. Other settings are another session (see `sessions`).
    """

    def __init__(self, journal: Journal | None = None, folder: Path | None = None) -> None:
        self.journal = journal or Journal()
        # Where the engine runs, from which the relative paths of a configuration count.
        self.folder = folder or Path()
        # How to log in to nodes, by name, and to the others but for the address, where the caller says it.
        self.logins: Mapping[str, Host] = {}
        self.other_login: Host | None = None
        # What the configuration says of resources that are to be imported, by type and import id.
        self.expected: Mapping[tuple[str, str], Object] = {}
        # What guests wait for.
        self.waits = GuestWaits()
        self.stopping = asyncio.Event()
        self._configuring = asyncio.Lock()
        self.commits = GroupCommit()
        self.ids = VmIds()
        # The type of a storage never changes.
        self.storage_types: dict[str, str] = {}
        # Clones onto one storage: its lock on Proxmox times out when many wait for it.
        self.clones = Turns()
        # Changes of one list of firewall rules: each moves the positions that the others count with.
        self.rule_lists = Turns()
        self.redactor: Redactor = NOTHING_SECRET
        self._settings: Settings | None = None
        self._client: proxmox.Client | None = None
        self._resources = contextlib.AsyncExitStack()

    async def configure(self, settings: Settings) -> None:
        """Use these settings from now on; those of a session are always the same.

        Raises:
            ProxmoxError: The cluster does not accept us.
            ProxmoxUnreachableError: It cannot be reached, or is not the one that is trusted.
        """
        async with self._configuring:
            # A command that was interrupted has ended by now; this is the next one.
            self.stopping.clear()
            self.journal.begin_run()
            if self._client is not None:
                self._client.expire_reads()
            if self._settings is None:
                await self._open(settings)

    async def _open(self, settings: Settings) -> None:
        client = proxmox.Client(settings.connection, stopping=self.stopping)
        client.on_task = self.waits.report_task
        async with contextlib.AsyncExitStack() as opened:
            await opened.enter_async_context(client)
            # A wrong token, address or certificate is one error here, in place of one for each resource.
            await client.get("/version")
            self._resources.push_async_exit(opened.pop_all())
        self._client = client
        self._settings = settings
        logins = (*self.logins.values(), *((self.other_login,) if self.other_login else ()))
        secrets = [settings.ssh.password or "", settings.ssh.private_key or ""]
        if settings.ssh.socks5 is not None:
            secrets.append(settings.ssh.socks5.password)
        secrets += [secret for login in logins for secret in (login.password, login.private_key) if secret]
        self.redactor = client.redactor.with_secrets(secrets)

    @property
    def is_configured(self) -> bool:
        """Whether an engine has said which cluster it works on."""
        return self._client is not None

    async def close(self) -> None:
        """Close the connections."""
        await self._resources.aclose()

    def stop(self) -> None:
        """End every wait: the user interrupted the run."""
        self.stopping.set()

    @property
    def settings(self) -> Settings:
        """The settings in use.

        Raises:
            ProviderSettingsError: There are none yet.
        """
        if self._settings is None:
            raise ProviderSettingsError(_NOT_KNOWN, remedy=_NOT_KNOWN_REMEDY)
        return self._settings

    @property
    def client(self) -> proxmox.Client:
        """The door to the API.

        Raises:
            ProviderSettingsError: The provider is not configured yet.
        """
        if self._client is None:
            raise ProviderSettingsError(_NOT_KNOWN, remedy=_NOT_KNOWN_REMEDY)
        return self._client
