"""Where the user wrote what a message is about: the file and line of the input, never of a generated file."""

from __future__ import annotations

import bisect
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.errors import Location
from stackyard.path.locate import POOL_KEY
from stackyard.path.own_code import CODE_FILE
from stackyard.render.names import label
from stackyard.render.objects import address_of_object
from stackyard.render.references import address_of, address_of_file, data_addresses
from stackyard.sources.site.build_guest import GuestLocations
from stackyard.sources.site.document import format_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stackyard.path.locate import Key, Locate
    from stackyard.path.target import Resolved
    from stackyard.sources.deployment.model import ParsedDeployment
    from stackyard.sources.deployment.text import ObjectText
    from stackyard.sources.site.layers import GuestEntry
    from stackyard.sources.site.load import Site


__all__ = ["SourceLocations", "in_deployment", "in_env"]

# What the fields of the model are called in a deployment object.
_DEPLOYMENT_FIELDS = {
    "clone": "clone_from",
    "cpu": "cpu_cores",
    "memory": "memory_dedicated",
    "node": "node_name",
    "pool": "pool_id",
    "template": "template_file_id",
}


def in_env(site: Site, env: str) -> Locate:
    """Return what finds the places of an env's guests; a preset's line counts where the entry has none."""
    guests: dict[str, GuestEntry] = {}

    def locate(key: str, field: Sequence[Key] = ()) -> Location | None:
        if not guests:
            # Built when the first place is looked for: most runs look for none, and some for thousands.
            for guest in site.guests(env):
                guests.setdefault(str(guest.values.get("key") or guest.name), guest)
        if key in guests:
            return GuestLocations(guests[key], {}).place(tuple(field))
        image = _find_image(key, site.settings.images)
        if image is not None and site.file is not None:
            return site.file.places.place(("images", image))
        if key.startswith(POOL_KEY) and env in site.envs:
            return site.envs[env].places.place(("pools", key.removeprefix(POOL_KEY)))
        return None

    return locate


def _find_image(key: str, images: Iterable[str]) -> str | None:
    """Return the image of a site that has a key; a file that is to go is known by its label alone."""
    for image in sorted(images, key=len, reverse=True):
        own = f"image/{image}"
        if key in (own, label(own)) or key.startswith((f"{own}@", f"{label(own)}_")):
            return image
    return None


def in_deployment(document: ObjectText, understood: ParsedDeployment) -> Locate:
    """Return what finds the places of the guests and pools of a deployment object."""

    def locate(key: str, field: Sequence[Key] = ()) -> Location | None:
        if key.startswith(POOL_KEY):
            return document.place(("pools", key.removeprefix(POOL_KEY)))
        guest = understood.find(key)
        if guest is None:
            return None
        named = [_DEPLOYMENT_FIELDS.get(str(field[0]), str(field[0]))] if field else []
        return document.place((*guest.path, *named))

    return locate


_TYPE = re.compile(r'^ {4}"([a-z_0-9]+)": \{')
_NAME = re.compile(r'^ {6}"([^"]+)": \{')


class SourceLocations:
    """Turns places in the generated configuration into those of the user's input.

    Args:
        resolved: The target: its model, its own code, and where its guests are written.
        folder: The folder of the generated configuration.
    """

    def __init__(self, resolved: Resolved, folder: Path) -> None:
        desired = resolved.desired
        self._locate = resolved.locate
        self._code = resolved.code
        self._folder = folder
        self._keys = {address_of(guest): guest.key for guest in desired.guests}
        self._keys |= {one: guest.key for guest in desired.guests for one in data_addresses(guest.key)}
        self._keys |= {address_of_file(file): file.key for file in desired.files}
        self._keys |= {(one := address_of_object(each.key)): one for each in desired.objects}
        self._read: _GeneratedFile | None = None

    def __call__(self, where: Location | None, address: str | None) -> Location | None:
        """Return the place in the input for one that an engine names; a foreign file stays as it is."""
        is_generated = where is None or where.path.startswith(f"{self._folder}/")
        if where is not None and not is_generated:
            return Location(format_path(Path(where.path)), where.line, where.column)
        if where is not None and where.path == str(self._folder / CODE_FILE):
            return self._code.locate_output(_lines_to(where))
        found = address or self._resource_at(where) or ""
        key = self._keys.get(found)
        return None if key is None else self._locate(key, ())

    def _resource_at(self, where: Location | None) -> str | None:
        """Return the address of the resource that a line of the generated file belongs to."""
        if where is None or where.line is None:
            return None
        try:
            status = os.stat(where.path)
            version = (where.path, status.st_mtime_ns, status.st_size)
            if self._read is None or self._read.version != version:
                self._read = _read_generated(Path(where.path), version)
        except OSError:
            return None
        return self._read.address_at(where.line)


def _lines_to(where: Location) -> list[str]:
    """Return the lines of a generated file as far as a place; none where it cannot be read."""
    try:
        with open(where.path, encoding="utf-8") as stream:
            return stream.read().splitlines()[: where.line or 0]
    except OSError:
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class _GeneratedFile:
    """Which resource each line of a generated file belongs to.

    Attributes:
        version: Path, time and size of what was read.
        lines: The lines, counted from one, where a resource or a kind of resources begins.
        addresses: The address of the resource that begins in each of them; empty where a kind begins.
    """

    version: tuple[str, int, int]
    lines: tuple[int, ...]
    addresses: tuple[str, ...]

    def address_at(self, line: int) -> str | None:
        """Return the address of the resource that a line belongs to."""
        place = bisect.bisect_right(self.lines, line) - 1
        return (self.addresses[place] or None) if place >= 0 else None


def _read_generated(path: Path, version: tuple[str, int, int]) -> _GeneratedFile:
    """Read a generated file once for all its places: an engine may name thousands of them."""
    starts: dict[int, str] = {}
    kind = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if (found := _TYPE.match(line)) is not None:
            kind, starts[number] = found[1], ""
        elif kind and (found := _NAME.match(line)) is not None:
            starts[number] = f"{kind}.{found[1]}"
    return _GeneratedFile(version=version, lines=tuple(starts), addresses=tuple(starts.values()))
