"""Where a state is, and where it is locked: the addresses of the engines' `http` backend that are taken.

===========================  ============================================================================
address                      lock_address and unlock_address
===========================  ============================================================================
``/states/NAME``             the same, or ``/states/NAME/lock`` (LOCK or PUT or POST, UNLOCK or DELETE)
``/tfstate/states/NAME``     the same with that prefix
===========================  ============================================================================

Any other address is refused with 400, never with 404: engines take that for "no state yet". An engine that
locks one state and then reads another is refused as well, because its write would be refused only after it
had made its resources.
"""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base import serving
from stackyard.base.errors import ExitStatus
from stackyard.state.names import check_name
from stackyard.state.refusals import StateRefusedError

if TYPE_CHECKING:
    from aiohttp import web

__all__ = ["STATES", "LayoutError", "LocksOfConnection", "StateAddress", "is_engine", "read_address"]

STATES = "/states/"
_PREFIXED = "/tfstate/states/"
_LOCK = "/lock"
_STATE_METHODS = {"GET": "GET", "POST": "POST", "PUT": "POST", "LOCK": "LOCK", "UNLOCK": "UNLOCK"}
_LOCK_METHODS = {"LOCK": "LOCK", "PUT": "LOCK", "POST": "LOCK", "UNLOCK": "UNLOCK", "DELETE": "UNLOCK"}
_LAYOUTS = (
    "address = URL/states/NAME, lock_address and unlock_address either the same or with /lock behind it;"
    " with /tfstate before /states in all three, if you like."
)
_NOTE = "state-locks"
_ENGINE = "Go-http-client/"
# A proxy sends the requests of many clients over one connection.
_PROXY_HEADERS = ("Forwarded", "Via", "X-Forwarded-For", "X-Real-IP")


class LayoutError(StateRefusedError):
    """The addresses of an engine's `http` backend are not among those that the state service knows."""

    code = "E-STATE-LAYOUT"
    summary = "The addresses of the http backend do not fit together"
    default_remedy = f"Set {_LAYOUTS} Then run `init -reconfigure`."
    exit_status = ExitStatus.INVALID
    http_status = 400


@dataclass(frozen=True, slots=True)
class StateAddress:
    """What a request is about.

    Attributes:
        method: GET, POST, LOCK or UNLOCK, whatever the request calls it; empty for what is not done here.
        name: The state.
        allowed: The methods that may be used at this address.
    """

    method: str
    name: str
    allowed: tuple[str, ...]


def read_address(path: str, method: str, *, is_literal: bool = False) -> StateAddress:
    """Return what a request is about.

    Args:
        path: Its path, without the query.
        method: Its method.
        is_literal: Whether `/lock` at the end is part of a name: engines of our own runs lock a state at its
            own address, and a target may have any name.

    Raises:
        LayoutError: The address is none of ours.
        StateNameError: What it names cannot be a state.
    """
    prefix = next((one for one in (STATES, _PREFIXED) if path.startswith(one)), None)
    if prefix is None:
        raise LayoutError(f"{path[:100]} is not the address of a state. Addresses are: {_LAYOUTS}")
    # Decoded once: what is still encoded after that is no name.
    name = check_name(urllib.parse.unquote(path.removeprefix(prefix), errors="replace"))
    if is_literal or not name.endswith(_LOCK):
        return StateAddress(_STATE_METHODS.get(method, ""), name, tuple(_STATE_METHODS))
    if method == "GET":
        raise LayoutError(f"{path[:100]} is where a state is locked, not a state. Addresses are: {_LAYOUTS}")
    return StateAddress(_LOCK_METHODS.get(method, ""), name.removesuffix(_LOCK), tuple(_LOCK_METHODS))


def is_engine(request: web.BaseRequest) -> bool:
    """Return whether a request is one of OpenTofu or Terraform.

    They do not read the answer to a LOCK. Where it has a body, they close the connection and open another
    one for the state; where it has none, they stay on this one, and we know both requests for the same run.
    """
    return request.headers.get("User-Agent", "").startswith(_ENGINE)


class LocksOfConnection:
    """The locks that a client took over one connection.

    An engine has a connection of its own for each state. One that locked a state over it and then reads
    another has a `lock_address` that does not fit its `address`.

    Args:
        request: The request of the client.
        principal: Who the client is.
    """

    def __init__(self, request: web.BaseRequest, principal: str) -> None:
        # Other clients may work on many states over one connection.
        self._is_engine = is_engine(request) and not any(name in request.headers for name in _PROXY_HEADERS)
        self._principal = principal
        self._locks: dict[str, tuple[str, str]] = serving.connection_notes(request).setdefault(_NOTE, {})

    def add(self, name: str, lock_id: str) -> None:
        """Note that a lock was granted."""
        if self._is_engine:
            self._locks[lock_id] = (self._principal, name)

    def remove(self, lock_id: str) -> None:
        """Note that a lock was released."""
        self._locks.pop(lock_id, None)

    def check_read(self, name: str) -> None:
        """Refuse to read a state to a client that locked others, and not this one.

        Raises:
            LayoutError: It did.
        """
        locked = {state for principal, state in self._locks.values() if principal == self._principal}
        if locked and name not in locked and self._is_engine:
            raise LayoutError(
                f"This engine locked {', '.join(sorted(locked))} and reads {name}: its lock_address belongs"
                f" to another state than its address. Addresses are: {_LAYOUTS}"
            )
