"""Images that guests are made from, other files for the nodes, and pools."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from stackyard.desired.files import Content, Download, FileName, VolumeId
from stackyard.desired.secret import Text
from stackyard.sources.site.entities.values import Entity, Line, Url

__all__ = [
    "BUILT_IN_IMAGES",
    "DownloadEntry",
    "FileEntry",
    "Image",
    "PoolEntry",
    "SnippetEntry",
    "UploadEntry",
]

# The names that such sites have always used, and where their builds put the files.
BUILT_IN_IMAGES = {
    name: f"local:iso/{name}.img" for name in ("debian-12", "debian-13", "debian-13-pve", "pve-9")
}
ImageContent = Literal["iso", "import", "vztmpl"]
Checksum = Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]+$")]
Algorithm = Literal["md5", "sha1", "sha224", "sha256", "sha384", "sha512"]


class _DownloadFields(Entity):
    """What a download may say; the rules are those of the model."""

    datastore: Line | None = None
    file_name: FileName | None = None
    checksum: Checksum | None = None
    checksum_algorithm: Algorithm | None = None
    decompression: Literal["gz", "lzo", "zst", "bz2"] | None = None
    verify_tls: bool | None = None
    overwrite: bool | None = None


class Image(_DownloadFields):
    """An image: a `volume` that the nodes have, or a `url` that they download it from."""

    volume: VolumeId | None = None
    url: Url | None = None
    content: ImageContent | None = None

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.volume is None) == (self.url is None):
            raise ValueError("name the image by exactly one of `volume` and `url`")
        if self.volume is not None and len(self.model_fields_set) > 1:
            raise ValueError("a `volume` is there already; everything else is for a `url`")
        if self.url is not None:
            # The model knows the rules of checksums; the key and the node do not matter to them.
            said = {field: getattr(self, field) for field in self.model_fields_set if field != "volume"}
            Download.model_validate(
                {"kind": "download", "key": "x", "node": "x", "content": "iso", **_drop_null(said)}
            )
        return self


def _drop_null(said: dict[str, object]) -> dict[str, object]:
    return {field: value for field, value in said.items() if value is not None}


class DownloadEntry(_DownloadFields):
    """A file that the node fetches itself."""

    kind: Literal["download"]
    url: Url
    content: ImageContent


class SnippetEntry(Entity):
    """A small file whose content is written here."""

    kind: Literal["snippet"]
    datastore: Line | None = None
    file_name: FileName
    content: Text
    mode: Annotated[str, StringConstraints(pattern=r"^0?[0-7]{3}$")] | None = None


class UploadEntry(Entity):
    """A file of the machine that stackyard runs on; its path is relative to the site."""

    kind: Literal["upload"]
    datastore: Line | None = None
    content: Content
    path: Line
    file_name: FileName | None = None
    checksum: Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]{64}$")] | None = None


FileEntry = Annotated[DownloadEntry | SnippetEntry | UploadEntry, Field(discriminator="kind")]


class PoolEntry(Entity):
    """A pool of guests."""

    comment: str | None = None
