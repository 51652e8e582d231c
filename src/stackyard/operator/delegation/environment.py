"""What the archive holds: an interpreter with its library, the packages, shared libraries, engine, and we."""

from __future__ import annotations

import os
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import stackyard
from stackyard.base import process
from stackyard.base.errors import StackyardError
from stackyard.operator.delegation.distributions import package_parts, runtime_distributions
from stackyard.operator.delegation.parts import Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stackyard.engine.version import Engine

__all__ = ["Layer", "RuntimePartsError", "own_layer", "with_libraries", "world_layer"]

_PYTHON = PurePosixPath("python")
_LIBRARIES = PurePosixPath("lib")
_PROGRAMS = PurePosixPath("bin")
_LINKER_TIMEOUT_S = 120.0

# Of Python's own library these are for developers, or need a terminal or a screen.
_UNUSED_LIBRARY = frozenset(
    "__pycache__ test tests idlelib idle_test tkinter turtledemo lib2to3 ensurepip venv pydoc_data "
    "site-packages dist-packages".split()
)
_UNUSED_OWN = frozenset({"__pycache__"})
_UNUSED_MODULES = (
    "_test _xxtest xxlimited _ctypes_test _tkinter _curses readline nis ossaudiodev audioop".split()
)
# What belongs to the C library: it must fit the kernel and the machine, and is on every one.
_OF_THE_C_LIBRARY = (
    "linux-vdso. linux-gate. ld-linux ld64. libc. libm. libdl. libpthread. librt. libutil. libresolv. "
    "libnss_ libanl. libmvec. libBrokenLocale. libnsl.so.1"
).split()

_PYTHON_SCRIPT = """\
#!/bin/sh
# Starts the Python of this folder with the libraries of this folder, wherever the folder is.
here=${0%/*}; case $here in "$0") here=. ;; esac
here=$(cd "$here/.." && pwd -P) || exit 127
LD_LIBRARY_PATH=$here/lib exec "$here/python/bin/python3" "$@"
"""
_START_SCRIPT = """\
#!/bin/sh
# Starts the stackyard of this folder, wherever the folder is.
here=${{0%/*}}; case $here in "$0") here=. ;; esac
here=$(cd "$here/.." && pwd -P) || exit 127
STACKYARD_TOFU=$here/bin/{engine} LD_LIBRARY_PATH=$here/lib
export STACKYARD_TOFU LD_LIBRARY_PATH
exec "$here/python/bin/python3" -I -X utf8 "$here/start.py" "$@"
"""
_START = """\
# Runs stackyard; programs that it starts with its own Python find the libraries through the script.
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.executable = os.path.join(here, "bin", "python")
packages = os.path.join(here, "python", "lib", {library!r}, "site-packages")
if packages not in sys.path:
    sys.path.append(packages)

from stackyard.__main__ import run

run()
"""


class RuntimePartsError(StackyardError):
    """A part that has to be sent to an inner host cannot be found on this machine."""

    code = "E-DELEGATION-PARTS"
    summary = "The archive for inner hosts cannot be packed"
    default_remedy = "Install stackyard into a virtual environment of its own and run it from there."


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Parts of the archive that change together."""

    name: str
    parts: tuple[Part, ...]


def world_layer(engine: Engine) -> Layer:
    """Return everything that stackyard depends on, shared libraries left out, which have to be asked for.

    Raises:
        RuntimePartsError: Something is not there.
    """
    library = _library_name()
    packages = _PYTHON / "lib" / library / "site-packages"
    parts = [
        Part(path=_PYTHON / "bin" / "python3", source=_interpreter(), is_program=True),
        *_library_parts(_PYTHON / "lib" / library),
        *package_parts(runtime_distributions(), packages),
        Part(path=_PROGRAMS / engine.flavour.value, source=engine.path, is_program=True),
        Part(path=_PROGRAMS / "python", source=_PYTHON_SCRIPT.encode(), is_program=True),
        Part(
            path=_PROGRAMS / "stackyard",
            source=_START_SCRIPT.format(engine=engine.flavour.value).encode(),
            is_program=True,
        ),
        Part(path=PurePosixPath("start.py"), source=_START.format(library=library).encode()),
    ]
    return Layer(name="world", parts=_once(parts))


def own_layer() -> Layer:
    """Return stackyard itself; the lab, `pvelab`, is not started on an inner host and stays away."""
    root = Path(stackyard.__file__).resolve().parent
    below = _PYTHON / "lib" / _library_name() / "site-packages" / "stackyard"
    parts = (
        Part(path=below / PurePosixPath(*path.relative_to(root).parts), source=path)
        for path in _files(root, _UNUSED_OWN)
        if path.suffix != ".pyc"
    )
    return Layer(name="own", parts=_once(parts))


async def with_libraries(layer: Layer) -> Layer:
    """Return a layer with the shared libraries that its programs and modules need.

    Raises:
        RuntimePartsError: One of them is not on this machine.
    """
    files = [
        part.source
        for part in layer.parts
        if isinstance(part.source, Path)
        and (part.is_program or ".so" in part.path.name)
        and _is_binary(part.source)
    ]
    found = await _list_needed_libraries([str(file) for file in files])
    libraries = [Part(path=_LIBRARIES / name, source=Path(path)) for name, path in found.items()]
    return Layer(name=layer.name, parts=_once([*layer.parts, *libraries]))


async def _list_needed_libraries(files: list[str]) -> Mapping[str, str]:
    """Return the shared libraries that files need by name, as the linker of this machine finds them."""
    command = process.Command(argv=("ldd", *files), env=process.environment(), timeout_s=_LINKER_TIMEOUT_S)
    said = (await process.run(command, check=False)).stdout
    missing = sorted({line.split()[0] for line in said.splitlines() if line.endswith("=> not found")})
    if missing:
        raise RuntimePartsError(f"These shared libraries are not on this machine: {', '.join(missing)}.")
    pairs = (line.strip().split(" => ") for line in said.splitlines() if " => " in line)
    paths = {name.strip(): rest.split(" (")[0] for name, rest in pairs}
    return {
        name: path
        for name, path in sorted(paths.items())
        if not name.startswith(tuple(_OF_THE_C_LIBRARY)) and path.startswith("/")
    }


def _is_binary(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(4) == b"\x7fELF"


def _interpreter() -> Path:
    found = Path(sys.executable).resolve()
    if not found.is_file() or not _is_binary(found):
        raise RuntimePartsError(f"The Python that runs stackyard, {found}, is no program that can be copied.")
    return found


def _library_name() -> str:
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def _library_parts(below: PurePosixPath) -> Iterator[Part]:
    """Return Python's own library."""
    root = Path(sysconfig.get_path("stdlib"))
    if not (root / "os.py").is_file():
        raise RuntimePartsError(f"Python's own library is not in {root}.")
    for path in _files(root, _UNUSED_LIBRARY):
        if path.suffix not in (".py", ".so", ".txt") or path.relative_to(root).parts[0].startswith("config-"):
            continue
        if path.suffix == ".so" and path.name.startswith(tuple(_UNUSED_MODULES)):
            continue
        yield Part(path=below / PurePosixPath(*path.relative_to(root).parts), source=path)


def _files(root: Path, unused: frozenset[str]) -> Iterator[Path]:
    """Return the files below a folder in order, without those in folders of certain names."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - unused)
        yield from (Path(folder, name) for name in sorted(names))


def _once(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return parts in the order of their paths, each path once."""
    return tuple(part for _, part in sorted({part.path: part for part in parts}.items()))
