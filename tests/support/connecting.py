"""An empty folder, a lab, and `stackyard connect` run between them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.cli import Ended, stackyard
from tests.support.engine import real_engine
from tests.support.lab import proxmoxer_client

from stackyard import lab
from stackyard.engine.version import Flavour
from stackyard.sources.site.load import Site

__all__ = ["Newcomer"]


@dataclass(frozen=True, kw_only=True)
class Newcomer:
    """Somebody with a Proxmox VE, an empty folder, and the password of root."""

    running: lab.Running
    folder: Path

    def run(self, *arguments: str, status: int | None = 0, **env: str) -> Ended:
        """Run the program in the folder; check how it ends, unless that is left open."""
        given = {"STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path), **env}
        ended = stackyard(*arguments, cwd=self.folder, env=given)
        if status is not None:
            assert ended.status == status, f"{arguments}\n{ended.stdout}\n{ended.stderr}"
        return ended

    def connect(self, *arguments: str, status: int | None = 0, **env: str) -> Ended:
        """Connect as root with everything that a script gives; arguments and variables come on top."""
        login = {"STACKYARD_PVE_PASSWORD": self.running.password, **env}
        user = [] if "--user" in arguments or "--token" in arguments else ["--user", "root@pam"]
        pin = [] if "--fingerprint" in arguments else ["--fingerprint", self.running.fingerprint]
        return self.run("connect", self.running.url, *user, *pin, *arguments, status=status, **login)

    def error(self, *arguments: str, status: int, **env: str) -> dict[str, Any]:
        """Connect, which is refused; return the error."""
        error = self.connect(*arguments, "--json", status=status, **env).document["error"]
        assert isinstance(error, dict)
        return error

    def token(self, key: str) -> str:
        """Return a token of the secrets."""
        return Site.load(self.folder).secret_values.api_tokens[key]

    @property
    def api(self) -> Any:
        """proxmoxer, logged in as root."""
        return proxmoxer_client(self.running)

    def files(self) -> dict[str, bytes]:
        """Return every file of the folder."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }

    def access(self) -> dict[str, Any]:
        """Return everything that the lab has of users, roles and entries."""
        api = self.api
        users = {row["userid"]: row.get("tokens") for row in api.access.users.get(full=1)}
        roles = {row["roleid"]: row["privs"] for row in api.access.roles.get() if not row.get("special")}
        return {"users": users, "roles": roles, "acl": api.access.acl.get()}
