"""What a command gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["Result"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The end of a command that worked.

    Attributes:
        document: What `--json` prints.
        show: Writes the same for a human; nothing to show when absent.
        status: What the shell gets.
    """

    document: Mapping[str, Any]
    show: Callable[[TextWriter], None] | None = None
    status: ExitStatus = ExitStatus.DONE
