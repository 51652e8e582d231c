"""Parts of stackyard that are installed only on request, and what to say where one is missing."""

from __future__ import annotations

import contextlib
import enum
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.documents.jsontext import parse_json
from stackyard.base.errors import StackyardError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EXTRAS", "InstalledBy", "MissingExtraError", "how_installed", "is_there", "needed"]

# What each is for, and a library that is there when it is installed.
EXTRAS = {
    "s3": ("stores in S3 buckets", "boto3"),
    "postgres": ("stores in PostgreSQL", "psycopg"),
    "schema": ("a JSON Schema of your own for the deployment object", "jsonschema_rs"),
}


class MissingExtraError(StackyardError):
    """An optional part of stackyard is needed here, and it is not installed."""

    code = "E-EXTRA-MISSING"
    summary = "An optional part of stackyard is not installed"
    default_remedy = (
        "Install stackyard with this extra; docs/howto/install.md shows how for pipx, uv and pip."
    )


class InstalledBy(enum.StrEnum):
    """What put stackyard where it runs."""

    INSTALL_SH = "install.sh"
    PIPX = "pipx"
    UV = "uv"
    EDITABLE = "source"
    PIP = "pip"


# What each leaves in the environment that it makes.
_RECEIPTS = {
    "stackyard-install.txt": InstalledBy.INSTALL_SH,
    "pipx_metadata.json": InstalledBy.PIPX,
    "uv-receipt.toml": InstalledBy.UV,
}
_COMMANDS = {
    InstalledBy.INSTALL_SH: "sh install.sh --extras {extra}",
    InstalledBy.PIPX: "pipx runpip stackyard install 'stackyard[{extra}]'",
    InstalledBy.UV: "uv pip install --python {python} 'stackyard[{extra}]'",
    InstalledBy.EDITABLE: "make setup",
    InstalledBy.PIP: "{python} -m pip install 'stackyard[{extra}]'",
}
# The same for one that is not there yet.
_NEW = {
    InstalledBy.PIPX: "pipx install 'stackyard[{extra}]'",
    InstalledBy.UV: "uv tool install 'stackyard[{extra}]'",
    InstalledBy.PIP: "python -m pip install 'stackyard[{extra}]'",
}


def how_installed() -> InstalledBy:
    """Return what installed the stackyard that runs."""
    for name, by in _RECEIPTS.items():
        if Path(sys.prefix, name).is_file():
            return by
    import importlib.metadata  # lazy: it costs 10 ms, and is needed only for an error or for `doctor`

    try:
        source = importlib.metadata.distribution("stackyard").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        return InstalledBy.EDITABLE
    is_editable = source is not None and parse_json(source).get("dir_info", {}).get("editable", False)
    return InstalledBy.EDITABLE if is_editable else InstalledBy.PIP


def is_there(extra: str) -> bool:
    """Return whether an extra is installed; nothing of it is loaded."""
    return importlib.util.find_spec(EXTRAS[extra][1]) is not None


@contextlib.contextmanager
def needed(extra: str, what: str) -> Iterator[None]:
    """Import what an extra brings, in the block.

    Args:
        extra: Its name.
        what: What asks for it, as the beginning of a sentence.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        yield
    except ImportError as err:
        if (err.name or "").partition(".")[0] in {"stackyard", "pvelab"}:
            raise
        raise MissingExtraError(
            f"{what} needs the extra `{extra}` ({EXTRAS[extra][0]}): {err}.", remedy=_remedy(extra)
        ) from err


def _remedy(extra: str) -> str:
    by = how_installed()
    command = _COMMANDS[by].format(extra=extra, python=sys.executable)
    rest = "; ".join(f"with {one}: {text.format(extra=extra)}" for one, text in _NEW.items() if one is not by)
    return f"Run: {command}\nThis stackyard was installed by {by}. A new install, {rest}."
