"""Where the engine works on a target: a folder that holds the rendered configuration and no secret."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base import directories, files
from stackyard.base.errors import FileError
from stackyard.engine.errored import find_errored_state_in
from stackyard.path.own_code import LINKS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.path.planfile import PlanKey
    from stackyard.path.target import Target
    from stackyard.render import Rendered

__all__ = ["Workspace", "input_digest", "list_unstored_states"]

_WORK = "work"

_BACKEND_FILE = "backend.tf.json"
_BACKEND = b'{"terraform": {"backend": {"http": {}}}}\n'
_STAMP = "initialised"
# What the engine prepares, and works with from then on: its backend, and which providers it chose.
_LOCK_FILE = ".terraform.lock.hcl"
_PREPARED = (_BACKEND_FILE, ".terraform/terraform.tfstate", ".terraform/modules/modules.json", _LOCK_FILE)
# The programs of the providers by source, version and platform: folders, or links into a cache or a mirror.
_PROVIDERS = ".terraform/providers/*/*/*/*/*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The folder of one target."""

    folder: Path

    @classmethod
    def of(cls, base: Path, target: Target) -> Workspace:
        """Return the folder of a target below a base."""
        return cls(folder=base / _WORK / target.state_name.replace("/", "--"))

    def write(self, rendered: Rendered) -> None:
        """Make the configuration in the folder exactly this one.

        Raises:
            FileError: The folder cannot be written.
        """
        directories.ensure_private(self.folder)
        wanted: Mapping[str, bytes] = {**rendered.files, _BACKEND_FILE: _BACKEND}
        for path in self.folder.iterdir():
            if path.name not in wanted and _is_read_unasked(path.name) and not path.is_dir():
                path.unlink()
        self._link(rendered.links)
        for name, content in wanted.items():
            path = self.folder / name
            if not path.exists() or path.read_bytes() != content:
                files.replace_file(path, content)

    def _link(self, wanted: Mapping[str, Path]) -> None:
        for name in LINKS:
            path, target = self.folder / name, wanted.get(name)
            is_right = target is not None and path.is_symlink() and path.readlink() == target
            if is_right:
                continue
            try:
                path.unlink(missing_ok=True)
                if target is not None:
                    path.symlink_to(target)
            except OSError as err:
                raise FileError.from_os_error(err, "write", path) from err

    def drop_stale_lock(self, source: str, constraint: str) -> bool:
        """Remove the engine's choice of providers where it no longer fits; return whether it was so.

        A newer stackyard asks for a newer provider, and the engine refuses to prepare the folder then. It is
        a folder of ours: which provider is used is for the configuration to say.

        Args:
            source: The provider, as `bpg/proxmox`.
            constraint: Which versions fit, as `~> 0.111`.
        """
        path = self.folder / _LOCK_FILE
        if not path.exists():
            return False
        entry = re.compile(rf'provider "[^"]*/{re.escape(source)}" \{{[^}}]*?version\s*=\s*"([^"]+)"')
        chosen = entry.findall(path.read_text(errors="replace"))
        if all(_fits(version, constraint) for version in chosen):
            return False
        path.unlink()
        return True

    def is_initialised(self, stamp: str) -> bool:
        """Return whether the engine prepared the folder for this before, and all that it left is still there.

        Args:
            stamp: What the folder has to be prepared for: which engine, which providers, which versions.
        """
        path = self._stamp
        return path.exists() and path.read_text() == self._make_marker(stamp)

    def mark_initialised(self, stamp: str) -> None:
        """Remember that the engine prepared the folder."""
        files.replace_file(self._stamp, self._make_marker(stamp).encode())

    def _make_marker(self, stamp: str) -> str:
        digest = hashlib.sha256()
        for name in _PREPARED:
            path = self.folder / name
            digest.update(path.read_bytes() if path.exists() else b"-")
            digest.update(b"\0")
        for path in sorted(self.folder.glob(_PROVIDERS)):
            digest.update(f"{path.relative_to(self.folder)}\0{path.exists()}\0".encode())
        return f"{stamp}\n{digest.hexdigest()}\n"

    @property
    def _stamp(self) -> Path:
        return self.folder / ".terraform" / _STAMP


def list_unstored_states(base: Path) -> dict[str, Path]:
    """Return the states that an apply on this machine could not store, each with the file that holds it.

    Args:
        base: The folder that the work folders are below.
    """
    found = {}
    try:
        folders = sorted((base / _WORK).iterdir())
    except OSError:
        # There are none, or nothing can be known of them.
        return {}
    for folder in folders:
        with contextlib.suppress(FileError):
            path = find_errored_state_in(folder, folder / ".terraform")
            if path is not None:
                found[folder.name.replace("--", "/")] = path
    return found


def _is_read_unasked(name: str) -> bool:
    """Tell whether an engine reads a file of its folder without being asked: configuration, and variables."""
    plain = name.removesuffix(".json")
    return plain.endswith((".tf", ".tofu", ".auto.tfvars")) or plain == "terraform.tfvars"


def _fits(version: str, constraint: str) -> bool:
    """Return whether a version is at least that of `~> A.B`, and of the same A."""
    wanted = [int(part) for part in constraint.removeprefix("~>").strip().split(".")]
    parts = version.partition("-")[0].split(".")
    if not all(part.isdecimal() for part in parts):
        return False
    found = [int(part) for part in parts]
    return found[: len(wanted) - 1] == wanted[:-1] and found[: len(wanted)] >= wanted


def input_digest(rendered: Rendered, values: Mapping[str, str], key: PlanKey) -> str:
    """Return the fingerprint of what should be there, which reveals nothing about the secrets in it.

    Args:
        rendered: The configuration.
        values: The secrets by the names of their variables.
        key: The user's key; without it no one can try values against the fingerprint.
    """
    digest = hmac.new(key.secret, digestmod=hashlib.sha256)
    for name, content in sorted(rendered.files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    for name, fingerprint in sorted(rendered.linked.items()):
        digest.update(f"{name}\0{fingerprint}\0".encode())
    for name, value in sorted(values.items()):
        encoded = value.encode()
        digest.update(f"{name}\0{len(encoded)}\0".encode() + encoded)
    return digest.hexdigest()[:32]
