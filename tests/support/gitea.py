"""A real Gitea for tests, on loopback: one for each test process, its data thrown away at the end.

`require_gitea()` gives it, or skips the test by name. `new_user`, `new_organization` and `new_repository`
make what a test needs, under names that no other test has. `start_gitea(folder)` starts one for a test that
stops it.

Gitea refuses to run as root: where root runs the tests, it runs as `nobody`. A Gitea that `stackyard tools`
builds has none of the files of its web pages; of those it needs one, the texts of its interface.
"""

from __future__ import annotations

import atexit
import base64
import ctypes
import functools
import itertools
import json
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.judges import find_judge
from tests.support.ports import free_port

__all__ = ["Gitea", "GiteaUser", "require_gitea", "start_gitea"]

ADMIN = "keeper"
START_S = 120.0
PR_SET_PDEATHSIG = 1
# What it does now and then; it does not start unless each has a text in its pages.
CRON_TASKS = """
archive_cleanup cancel_abandoned_jobs check_repo_stats cleanup_actions cleanup_hook_task_table
cleanup_packages delete_generated_repository_avatars delete_inactive_accounts delete_missing_repos
delete_old_actions delete_old_system_notices delete_repo_archives deleted_branches_cleanup gc_lfs
git_gc_repos rebuild_issue_indexer reinit_missing_repos repo_health_check resync_all_hooks
resync_all_sshkeys resync_all_sshprincipals start_schedule_tasks stop_endless_tasks
stop_zombie_tasks sync_external_users sync_repo_licenses update_checker update_migration_poster_id
update_mirrors
"""
CONFIG = """
RUN_MODE = prod
WORK_PATH = {folder}

[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {port}
ROOT_URL = http://127.0.0.1:{port}/
APP_DATA_PATH = {folder}/data
STATIC_ROOT_PATH = {folder}/static
DISABLE_SSH = true
OFFLINE_MODE = true
LFS_START_SERVER = false

[database]
DB_TYPE = sqlite3
PATH = {folder}/data/gitea.db
SQLITE_JOURNAL_MODE = WAL

[security]
INSTALL_LOCK = true
SECRET_KEY = {secret}
PASSWORD_HASH_ALGO = pbkdf2$10$50
MIN_PASSWORD_LENGTH = 6

[service]
DISABLE_REGISTRATION = true

[repository]
DEFAULT_BRANCH = main

[webhook]
ALLOWED_HOST_LIST = loopback
DELIVER_TIMEOUT = 5

[indexer]
ISSUE_INDEXER_TYPE = db

[session]
PROVIDER = memory

[oauth2]
ENABLED = false

[mailer]
ENABLED = false

[cron]
ENABLED = false

[log]
MODE = console
LEVEL = Warn
"""


@dataclass(frozen=True)
class GiteaUser:
    """A user with a token that may do everything that the user may."""

    login: str
    token: str
    password: str


@dataclass
class Gitea:
    """A server that can be stopped, paused and started again on the same data."""

    folder: Path
    program: Path
    port: int
    admin_token: str = ""
    process: subprocess.Popen[bytes] | None = field(default=None)
    people: dict[str, GiteaUser] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    # --- What tests make

    def new_user(self) -> GiteaUser:
        login, password = self._new_name("user"), secrets.token_hex(8)
        user = {"username": login, "password": password, "email": f"{login}@example.org"}
        self.call("POST", "/admin/users", {**user, "must_change_password": False})
        basic = base64.b64encode(f"{login}:{password}".encode()).decode()
        token = {"name": "tests", "scopes": ["all"]}
        made = self.call("POST", f"/users/{login}/tokens", token, authorization=f"Basic {basic}")
        return GiteaUser(login=login, token=made["sha1"], password=password)

    def find_user(self, role: str) -> GiteaUser:
        """Return the user that tests share for a role; each has a repository of its own."""
        if role not in self.people:
            self.people[role] = self.new_user()
        return self.people[role]

    def new_organization(self) -> str:
        return str(self.call("POST", "/orgs", {"username": self._new_name("org")})["username"])

    def new_team(self, organization: str, name: str, *members: GiteaUser) -> None:
        team = {"name": name, "permission": "write", "units": ["repo.code", "repo.pulls", "repo.issues"]}
        made = self.call("POST", f"/orgs/{organization}/teams", team)
        for member in members:
            self.call("PUT", f"/teams/{made['id']}/members/{member.login}")

    def add_owner(self, organization: str, user: GiteaUser) -> None:
        teams = self.call("GET", f"/orgs/{organization}/teams")
        owners = next(team["id"] for team in teams if team["name"] == "Owners")
        self.call("PUT", f"/teams/{owners}/members/{user.login}")

    def new_repository(self, owner: GiteaUser, *, private: bool = True) -> str:
        """Make an empty repository of a user, and return its name with the owner's."""
        document = {"name": self._new_name("repo"), "private": private, "default_branch": "main"}
        return str(self.call("POST", "/user/repos", document, token=owner.token)["full_name"])

    def new_organization_repository(self, organization: str) -> str:
        """Make an empty private repository of an organization, and return its name with the owner's."""
        document = {"name": self._new_name("repo"), "private": True, "default_branch": "main"}
        return str(self.call("POST", f"/orgs/{organization}/repos", document)["full_name"])

    def add_collaborator(self, repository: str, user: GiteaUser, permission: str) -> None:
        path = f"/repos/{repository}/collaborators/{user.login}"
        self.call("PUT", path, {"permission": permission})

    def git_url(self, repository: str, user: GiteaUser) -> str:
        """Return where git pushes to as a user; holds the token."""
        return f"http://{user.login}:{user.token}@127.0.0.1:{self.port}/{repository}.git"

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str = "",
        authorization: str = "",
    ) -> Any:
        """Ask the interface for something, as the administrator where nobody else is named."""
        request = urllib.request.Request(f"{self.url}/api/v1{path}", method=method)
        request.add_header("Authorization", authorization or f"token {token or self.admin_token}")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as answer:
                data = answer.read()
        except urllib.error.HTTPError as err:
            with err:
                raise AssertionError(f"{method} {path}: {err.code} {err.read()[:500]!r}") from err
        return json.loads(data) if data.strip() else None

    def _new_name(self, kind: str) -> str:
        return f"{kind}{next(self._numbers)}-{secrets.token_hex(3)}"

    # --- The server

    def start(self) -> None:
        """Start it, and return when it answers."""
        libc = ctypes.CDLL(None)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self._command("web"),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=self._environment(),
                # It must not outlive a test process that is killed. It is set after the change of the user,
                # which would take it back.
                preexec_fn=lambda: _become_plain(libc),
            )
        self._wait_until_ready()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def pause(self) -> None:
        """Stop it from answering, with its connections open."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def run(self, *arguments: str) -> str:
        """Run a command of its administration."""
        libc = ctypes.CDLL(None)
        done = subprocess.run(
            self._command(*arguments),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self._environment(),
            preexec_fn=lambda: _become_plain(libc),
            timeout=START_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def _command(self, *arguments: str) -> list[str]:
        return [str(self.program), "--config", str(self.folder / "app.ini"), *arguments]

    def _environment(self) -> dict[str, str]:
        user = pwd.getpwuid(_plain_ids()[0]).pw_name
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), "USER": user, "LANG": "C.UTF-8"}

    def _wait_until_ready(self) -> None:
        assert self.process is not None
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            try:
                self.call("GET", "/version", authorization="none")
            except (OSError, AssertionError):
                try:
                    self.process.wait(0.1)
                except subprocess.TimeoutExpired:
                    continue
                raise RuntimeError(f"Gitea ended: {(self.folder / 'log').read_text()[-2000:]}") from None
            return
        raise RuntimeError(f"Gitea is not ready: {(self.folder / 'log').read_text()[-2000:]}")


def _plain_ids() -> tuple[int, int]:
    """Return the user and the group that Gitea runs as: never root."""
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


def _become_plain(libc: ctypes.CDLL) -> None:
    if os.geteuid() == 0:
        user, group = _plain_ids()
        os.setgroups([])
        os.setgid(group)
        os.setuid(user)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start_gitea(folder: Path) -> Gitea:
    """Start a server of its own, for a test that stops it; in a folder that everybody may enter."""
    judge = find_judge("gitea")
    for name in ("data", "static/options/locale", "static/templates", "static/public"):
        (folder / name).mkdir(parents=True)
    texts = {f"admin.dashboard.{name}": name for name in CRON_TASKS.split()}
    (folder / "static/options/locale/locale_en-US.json").write_text(json.dumps(texts))
    port = free_port()
    config = CONFIG.format(folder=folder, port=port, secret=secrets.token_hex(32))
    (folder / "app.ini").write_text(config.lstrip())
    server = Gitea(folder, _place_program(judge, folder), port)
    for path in (folder, *folder.rglob("*")):
        if path != server.program:
            os.chown(path, *_plain_ids())
    try:
        server.run("migrate")
        words = f"admin user create --admin --username {ADMIN} --password {secrets.token_hex(8)}"
        said = server.run(*words.split(), "--email", f"{ADMIN}@example.org", "--must-change-password=false")
        assert ADMIN in said, said
        words = f"admin user generate-access-token --username {ADMIN} --scopes all --raw"
        server.admin_token = server.run(*words.split()).strip().splitlines()[-1]
        server.start()
    except BaseException:
        server.kill()
        raise
    return server


def _place_program(program: Path, folder: Path) -> Path:
    """Return the program where a plain user can run it: root's cache is closed to others."""
    if os.geteuid() != 0:
        return program
    place = folder / "gitea"
    try:
        os.link(program.resolve(), place)
    except OSError:
        shutil.copy(program, place)
    return place


@functools.cache
def _shared() -> Gitea:
    # Not below the folder of pytest, which is closed to other users.
    folder = Path(tempfile.mkdtemp(prefix="stackyard-gitea-"))
    folder.chmod(0o755)
    server = start_gitea(folder)

    def remove() -> None:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return server


def require_gitea() -> Gitea:
    """Return the server of this test process, or skip the test by name."""
    find_judge("gitea")
    return _shared()
