"""What the controller says when it does not do what it was asked for: a status, a code and a sentence."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Code", "RequestRefusedError"]


class Code(enum.StrEnum):
    """What is wrong with a request, in the codes that clients of such controllers know."""

    BAD_REQUEST = "E100"
    BAD_IDENTITY = "E101"
    METHOD = "E102"
    TOO_LARGE = "E103"
    NOT_FOUND = "E200"
    POSTURE_NOT_FOUND = "E201"
    KEY_NOT_FOUND = "E202"
    TOKEN_MISSING = "E300"  # noqa: S105 - the code of a refusal
    TOKEN_WRONG = "E301"  # noqa: S105 - the code of a refusal
    TOO_MANY = "E302"
    INVALID_SPEC = "E400"
    FAILED = "E500"
    BUSY = "E503"

    @property
    def meaning(self) -> str:
        """What it means, for the reference."""
        return _MEANINGS[self]


_MEANINGS = {
    Code.BAD_REQUEST: "the path or the body is not valid (400), or does not exist (404)",
    Code.BAD_IDENTITY: "that cannot be the name of a guest or a spec",
    Code.METHOD: "the method is not answered here; `Allow` names those that are",
    Code.TOO_LARGE: "the body is larger than is taken",
    Code.NOT_FOUND: "there is no such spec, repository or file",
    Code.POSTURE_NOT_FOUND: "the spec names a posture that the site does not have",
    Code.KEY_NOT_FOUND: "a user of the spec names a key that the site does not have",
    Code.TOKEN_MISSING: "a token is needed, and none was shown",
    Code.TOKEN_WRONG: "the token does not allow this: it is wrong, for another node, expired or revoked",
    Code.TOO_MANY: "too many wrong tokens from this address; `Retry-After` says when to try again",
    Code.INVALID_SPEC: "the spec is not valid, or guests of one name have different specs",
    Code.FAILED: "the controller could not do it; its log says why",
    Code.BUSY: "the controller has no room for more just now; `Retry-After` says when to try again",
}


class RequestRefusedError(StackyardError):
    """The controller refused a request; its client gets the status, a code and why."""

    code = "E-CONTROLLER-REFUSED"
    summary = "The controller refuses"
    default_remedy = "Ask for something that is there, with a token that opens it."

    def __init__(
        self, status: int, code: Code, detail: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.wire_code = code
        self.headers = dict(headers or {})
