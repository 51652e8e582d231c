"""The token for a store behind HTTPS, from the environment."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import files
from stackyard.clients.objects.base import StoreDeniedError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["TOKEN_FILE_VARIABLE", "TOKEN_VARIABLE", "StoreToken"]

TOKEN_VARIABLE = "STACKYARD_STORE_TOKEN"  # noqa: S105 - its name
TOKEN_FILE_VARIABLE = "STACKYARD_STORE_TOKEN_FILE"  # noqa: S105 - its name
_TOKEN = re.compile(r"[\x21-\x7e]{1,1000}")


class StoreToken:
    """A token, and where it came from; its representation shows nothing secret.

    Args:
        environment: The variables.

    Raises:
        StoreDeniedError: There is none.
        FileError: Its file cannot be read.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        given = os.environ if environment is None else environment
        self._text = given.get(TOKEN_VARIABLE, "").strip()
        self._path = "" if self._text else given.get(TOKEN_FILE_VARIABLE, "")
        if not self._text and not self._path:
            raise StoreDeniedError("The state service needs a token, and none is set.", remedy=self.remedy)
        self._secret = self._read()

    @property
    def remedy(self) -> str:
        """How to give a token that works."""
        where = f"the file {self._path} ({TOKEN_FILE_VARIABLE})" if self._path else TOKEN_VARIABLE
        return (
            f"Put a valid token into {where}. `stackyard state token create NAME --allow store`, run where"
            " the service has its store, creates one."
        )

    @property
    def header(self) -> str:
        """The header that shows it."""
        return f"Bearer {self._secret}"

    def renew(self) -> bool:
        """Read the file again; return whether there is another token in it now.

        Raises:
            StoreDeniedError: There is no token in it.
            FileError: It cannot be read.
        """
        before, self._secret = self._secret, self._read()
        return self._secret != before

    def _read(self) -> str:
        text = self._text or files.read_text(Path(self._path)).strip()
        if not _TOKEN.fullmatch(text):
            raise StoreDeniedError(
                "The token of the state service is empty or malformed.", remedy=self.remedy
            )
        return text
