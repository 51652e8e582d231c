"""Files on the storage of a node: images to download, snippets to write, files to upload."""

import re
import urllib.parse
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from stackyard.desired.secret import Text
from stackyard.desired.values import Key, Line, Value

__all__ = ["DeclaredFile", "Download", "File", "Snippet", "Upload"]

Content = Literal["iso", "import", "vztmpl", "snippets", "backup"]
_FILE_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.+@~-]*$"
FileName = Annotated[str, StringConstraints(pattern=_FILE_NAME, max_length=255)]
VolumeId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_.-]*:\S+$", max_length=512)]
_DIGEST_DIGITS = {"md5": 32, "sha1": 40, "sha224": 56, "sha256": 64, "sha384": 96, "sha512": 128}


class DeclaredFile(Value):
    """A file that the same model declares, by its key."""

    file: Key


# Where a guest uses a file: a volume that is already there (`local:iso/debian.iso`), or one of the model.
File = VolumeId | DeclaredFile


class Download(Value):
    """A file that the node fetches itself."""

    kind: Literal["download"]
    key: Key
    node: Line
    datastore: Line = "local"
    content: Literal["iso", "import", "vztmpl"]
    url: Annotated[str, StringConstraints(pattern=r"^https?://\S+$", max_length=4096)]
    file_name: FileName | None = None
    checksum: Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]+$")] | None = None
    checksum_algorithm: Literal["md5", "sha1", "sha224", "sha256", "sha384", "sha512"] | None = None
    decompression: Literal["gz", "lzo", "zst", "bz2"] | None = None
    verify_tls: bool = True
    overwrite: bool = False
    # Whether it is there already and belongs to someone else: it is used, and never written or deleted.
    is_shared: bool = False

    @property
    def stored_name(self) -> str:
        """What it is called on the storage: the end of its address unless it has a name."""
        return self.file_name or urllib.parse.unquote(urllib.parse.urlsplit(self.url).path).rpartition("/")[2]

    @property
    def volume_id(self) -> str:
        """What Proxmox calls it."""
        return f"{self.datastore}:{self.content}/{self.stored_name}"

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if not re.fullmatch(_FILE_NAME, self.stored_name):
            raise ValueError(f"{self.stored_name!r} is no name for a file on a storage: give a `file_name`")
        if (self.checksum is None) != (self.checksum_algorithm is None):
            raise ValueError("`checksum` and `checksum_algorithm` go together")
        if self.checksum is not None and self.checksum_algorithm is not None:
            digits = _DIGEST_DIGITS[self.checksum_algorithm]
            if len(self.checksum) != digits:
                raise ValueError(f"a {self.checksum_algorithm} checksum has {digits} digits")
        return self


class Snippet(Value):
    """A small file whose content is in the model, as cloud-init data or a hook script."""

    kind: Literal["snippet"]
    key: Key
    node: Line
    datastore: Line = "local"
    file_name: FileName
    content: Text
    mode: Annotated[str, StringConstraints(pattern=r"^0?[0-7]{3}$")] | None = None

    @property
    def volume_id(self) -> str:
        """What Proxmox calls it."""
        return f"{self.datastore}:snippets/{self.file_name}"


class Upload(Value):
    """A file of the machine that stackyard runs on."""

    kind: Literal["upload"]
    key: Key
    node: Line
    datastore: Line = "local"
    content: Content
    path: Line
    file_name: FileName | None = None
    checksum: Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]{64}$")] | None = None
    # Whether it is there already and belongs to someone else: it is used, and never written or deleted.
    is_shared: bool = False

    @property
    def volume_id(self) -> str:
        """What Proxmox calls it."""
        return f"{self.datastore}:{self.content}/{self.file_name or self.path.rpartition('/')[2]}"


AnyFile = Annotated[Download | Snippet | Upload, Field(discriminator="kind")]
