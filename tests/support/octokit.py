"""The descriptions that GitHub publishes of its interface and its webhooks, as packages of npm.

They are taken from the file that STACKYARD_TEST_GITHUB_OPENAPI or STACKYARD_TEST_GITHUB_WEBHOOKS names, from
the cache, or, where npm is on PATH, from its registry, checked by the sum of the archive.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

__all__ = ["REST", "WEBHOOKS", "Package"]

MEMBER = "package/generated/api.github.com.json"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stackyard-tests"
DOWNLOAD_S = 120


@dataclass(frozen=True)
class Package:
    """A package of npm with one description.

    Attributes:
        judge: What tests call it.
        name: Its name.
        version: Its version.
        sha512: The sum of its archive.
    """

    judge: str
    name: str
    version: str
    sha512: str

    @property
    def variable(self) -> str:
        """The variable with the path of its file."""
        return f"STACKYARD_TEST_{self.judge.upper().replace('-', '_')}"

    @property
    def path(self) -> Path:
        """Where its file is, or will be once it is downloaded."""
        named = os.environ.get(self.variable)
        return Path(named) if named else CACHE / f"{self.judge}-{self.version}.json"

    def get(self) -> Path | str:
        """Return its file, or why there is none."""
        return self.path if self.path.is_file() else self._download() or self.path

    def _download(self) -> str:
        advice = f"no {self.judge}: name the file of {self.name} in {self.variable}"
        npm = shutil.which("npm")
        if npm is None:
            return f"{advice}, or put npm on PATH"
        with tempfile.TemporaryDirectory() as name:
            command = [npm, "pack", "--silent", "--pack-destination", name, f"{self.name}@{self.version}"]
            try:
                subprocess.run(command, cwd=name, capture_output=True, timeout=DOWNLOAD_S, check=True)
                (archive,) = Path(name).glob("*.tgz")
            except (subprocess.SubprocessError, ValueError):
                return f"{advice}; npm does not get it"
            found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
            assert found == self.sha512, f"{self.name} {self.version} is not what it was"
            self._unpack(archive)
        return ""

    def _unpack(self, archive: Path) -> None:
        with tarfile.open(archive) as opened:
            member = opened.extractfile(MEMBER)
            assert member is not None
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Another process may do the same at this moment.
            part = self.path.with_name(f"{self.path.name}.{os.getpid()}")
            part.write_bytes(member.read())
        part.rename(self.path)


REST = Package(
    "github-openapi",
    "@octokit/openapi",
    "23.0.2",
    "pV8M7L9GY23AybNvTmo2nyjmpmnt6+2sRE/tqr0ZLQcPS4lnw7u5eZGNmwRNkBC3D7gZXbFx5AHzLUVRBXGDhg==",
)
WEBHOOKS = Package(
    "github-webhooks",
    "@octokit/openapi-webhooks",
    "12.1.0",
    "Z5eDsLCUNbx1zHpZb1LNQirADqdMTvWJQ/deahi0ws+tWWnwHXB+Pr4jfmM9OrETS9Y5iW8ZRu1fdbudObhLrg==",
)
