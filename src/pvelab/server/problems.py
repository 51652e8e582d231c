"""What goes wrong in the API, said the way Proxmox VE says it.

`PveError` is an answer to an API client (or the end of a task), not an error of stackyard: it never leaves
the lab. Handlers and workers raise it; dispatch turns it into a status line and a body, the task runner into
`TASK ERROR: ...`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PveError", "bad_parameter", "bad_parameters", "defect", "not_permitted"]

VERIFICATION_FAILED = "Parameter verification failed."


class PveError(Exception):
    """Refuse a call or fail a task with one of Proxmox's texts.

    Args:
        text: The text; its first line becomes the reason phrase.
        status: The HTTP status. A plain `die` of Proxmox is a 500.
        errors: What is wrong with each parameter.
        bare: Answer without a body, as the proxy does for failed tickets and dead nodes.
    """

    def __init__(
        self,
        text: str,
        *,
        status: int = 500,
        errors: Mapping[str, str] | None = None,
        bare: bool = False,
    ) -> None:
        super().__init__(text)
        self.text = text
        self.status = status
        self.errors = dict(errors) if errors else None
        self.bare = bare


def bad_parameters(errors: Mapping[str, str]) -> PveError:
    """Return the refusal of parameters, with one text each."""
    return PveError(VERIFICATION_FAILED, status=400, errors=errors)


def bad_parameter(name: str, text: str) -> PveError:
    """Return the refusal of one parameter."""
    return bad_parameters({name: text})


def not_permitted(what: str = "") -> PveError:
    """Return the refusal for want of a privilege; `what` is `/vms/100, VM.Allocate` or the like."""
    return PveError(f"Permission check failed ({what})" if what else "Permission check failed", status=403)


def defect(where: str, err: BaseException) -> PveError:
    """Report a defect of the lab itself to the event loop, and return what the client sees of it.

    The loop's exception handler has the traceback: by default it logs it, so that it is on the lab's own
    standard error and in no answer.
    """
    context = {"message": f"internal error of the lab in {where}", "exception": err}
    asyncio.get_running_loop().call_exception_handler(context)
    return PveError(f"internal error of the lab: {type(err).__name__}: {err}")
