"""A whole folder to another machine: it is the old one or the new one, and never something between."""

from __future__ import annotations

import asyncio
import shlex
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.scenario.context import Context

__all__ = ["send_folder"]

_UNPACK = """\
set -e
rm -rf {new} {old}
mkdir -p {new}
tar -xzf {archive} -C {new} --no-same-owner
rm -f {archive}
chown -R "${{SUDO_USER:-$(id -un)}}" {new}
for kept in {left_out}; do
if [ -e {folder}/"$kept" ]; then rm -rf {new}/"$kept"; cp -a --reflink=auto {folder}/"$kept" {new}/; fi
done
if [ -e {folder} ]; then mv {folder} {old}; fi
mv {new} {folder}
rm -rf {old}
"""


async def send_folder(context: Context, source: Path, folder: str, *, left_out: Sequence[str]) -> int:
    """Make a folder on the machine what one here is, and return the number of its files.

    Args:
        context: The run.
        source: The folder here.
        folder: The folder there; what is in it and not here goes.
        left_out: Names at its top that are not sent, and stay over there.

    Raises:
        StackyardError: It cannot be read here or written there.
    """
    made = await context.sh("mktemp -d /tmp/stackyard-XXXXXXXX", as_root=False)
    archive = f"{made.strip()}/folder.tar.gz"
    with tempfile.TemporaryDirectory() as temporary:
        packed = Path(temporary) / "folder.tar.gz"
        try:
            count = await asyncio.to_thread(_pack, source, packed, frozenset(left_out))
        except (OSError, tarfile.TarError) as err:
            raise FileError(f"{source} cannot be packed: {err}.") from err
        await context.machine.send(packed, archive)
    quoted = {
        "folder": shlex.quote(folder),
        "new": shlex.quote(f"{folder}.new"),
        "old": shlex.quote(f"{folder}.old"),
        "archive": shlex.quote(archive),
        "left_out": shlex.join(left_out),
    }
    await context.sh(_UNPACK.format(**quoted), timeout_s=600.0)
    await context.sh(f"rmdir {shlex.quote(made.strip())}", as_root=False)
    return count


def _pack(source: Path, target: Path, left_out: frozenset[str]) -> int:
    count = 0

    def filter_member(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        nonlocal count
        parts = Path(member.name).parts
        if parts and parts[0] in left_out:
            return None
        count += member.isfile()
        return member

    with tarfile.open(target, "w:gz", compresslevel=3) as archive:
        archive.add(source, arcname=".", filter=filter_member)
    return count
