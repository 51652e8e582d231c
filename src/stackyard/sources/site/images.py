"""Where the image of a guest comes from, and the other files that guests use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.sources.site.entities.images import BUILT_IN_IMAGES, Image, UploadEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.sources.site.load import Site

__all__ = ["Files", "content_of", "is_volume", "list_images"]

_SUFFIX_CONTENT = {
    ".iso": "iso",
    ".img": "iso",
    ".qcow2": "import",
    ".raw": "import",
    ".vmdk": "import",
    ".ova": "import",
    ".tar.gz": "vztmpl",
    ".tar.xz": "vztmpl",
    ".tar.zst": "vztmpl",
}


def is_volume(image: str) -> bool:
    """Return whether an image is named by the volume that it is, and not by a name of the site."""
    return ":" in image


def list_images(site: Site) -> dict[str, Image]:
    """Return every image that guests may name."""
    built_in = {name: Image(volume=volume) for name, volume in BUILT_IN_IMAGES.items()}
    return {**built_in, **site.settings.images}


def content_of(image: Image) -> str:
    """Return what kind of content an image is on its datastore; `import` where nothing tells."""
    if image.content is not None:
        return image.content
    if image.volume is not None:
        kind = image.volume.partition(":")[2].partition("/")[0]
        return kind if kind in ("iso", "import", "vztmpl") else "import"
    return _by_suffix(image.file_name or image.url or "")[1]


def _by_suffix(name: str) -> tuple[str, str]:
    plain = name.partition("?")[0]
    return next(
        ((suffix, kind) for suffix, kind in _SUFFIX_CONTENT.items() if plain.endswith(suffix)), ("", "import")
    )


class Files:
    """The files that the guests of one env use, each declared once a node.

    Args:
        site: The site.
        env: Whose guests; downloads carry its name, because each env keeps and removes its own.
        datastores: Where files go, by node.
        node: The node that files without one are for.
    """

    def __init__(self, site: Site, env: str, *, datastores: dict[str, str], node: str) -> None:
        self._site = site
        self._env = env
        self._images = list_images(site)
        self._datastores = datastores
        self._node = node
        self._declared: dict[str, dict[str, Any]] = {}

    def image(self, name: str, node: str) -> Any:
        """Return how a guest on a node refers to an image; one that is not known is left as it is."""
        known = self._images.get(name)
        if known is None:
            return name
        if known.volume is not None:
            return known.volume
        key = f"image/{name}" if node == self._node else f"image/{name}@{node}"
        if key not in self._declared:
            self._declared[key] = {
                "kind": "download",
                "key": key,
                "node": node,
                "datastore": self._datastores[node],
                "file_name": self._file_name(name, known),
                **_drop_null(known),
                "content": content_of(known),
            }
        return {"file": key}

    def _file_name(self, name: str, image: Image) -> str:
        suffix = _by_suffix(image.url or "")[0] or (".img" if content_of(image) == "iso" else ".qcow2")
        # What manifests are called here has characters that names of files have not.
        env = re.sub(r"[^A-Za-z0-9_.+@~-]+", "-", self._env).strip("-")
        return f"{env}-{name}{suffix}"

    def declare(self) -> None:
        """Declare the files of the env."""
        for key, entry in self._site.envs[self._env].model.files.items():
            self._declared[key] = self._entry(key, entry)

    def use(self, built: Any) -> None:
        """Declare those files of the site that what was built for a guest refers to."""
        if not self._site.settings.files:
            return
        for key in _references(built):
            shared = self._site.settings.files.get(key)
            if shared is not None and key not in self._declared:
                self._declared[key] = self._entry(key, shared)

    def _entry(self, key: str, entry: Any) -> dict[str, Any]:
        said = {
            "datastore": self._datastores[self._node],
            **_drop_null(entry),
            "key": key,
            "node": self._node,
        }
        if isinstance(entry, UploadEntry):
            said["path"] = str(self._site.root / entry.path)
        return said

    def list_declared(self) -> list[dict[str, Any]]:
        """Return every file that was declared."""
        return list(self._declared.values())


def _drop_null(model: Any) -> dict[str, Any]:
    said = model.model_dump(exclude_none=True, exclude_unset=True)
    return {key: value for key, value in said.items() if value is not None}


def _references(built: Any) -> Iterator[str]:
    """Return the keys of the files that a value refers to, however deep inside."""
    if isinstance(built, dict):
        if set(built) == {"file"} and isinstance(built["file"], str):
            yield built["file"]
        for value in built.values():
            yield from _references(value)
    elif isinstance(built, list | tuple):
        for value in built:
            yield from _references(value)
