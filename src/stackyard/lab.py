"""The lab under the name that it had as a part of stackyard: everything public here is `pvelab`'s."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pvelab

if TYPE_CHECKING:
    from pvelab import *  # noqa: F403

__all__ = pvelab.__all__


def __getattr__(name: str) -> Any:
    return getattr(pvelab, name)
