"""What can go wrong with a forge.

::

    StackyardError
    └── ForgeError                    a request failed
        ├── ForgeUnreachableError     no answer came
        ├── ForgeUnauthorizedError    the token is not accepted, or may not do that
        ├── ForgeNotFoundError        there is no such thing, or the token may not see it
        ├── ForgeRateLimitedError     the forge wants fewer requests
        ├── ForgeConflictError        it is no longer as the request expects
        ├── ForgeRefusedError         the forge refuses what a request asks for
        ├── ForgeAnswerError          the answer is not one of this kind of forge
        └── WebhookRefusedError       a delivery is cut off or not understood
            └── WebhookForgedError    a delivery is not proven to be from the forge
"""

from __future__ import annotations

from stackyard.base.errors import ExitStatus, StackyardError

__all__ = [
    "ForgeAnswerError",
    "ForgeConflictError",
    "ForgeError",
    "ForgeNotFoundError",
    "ForgeRateLimitedError",
    "ForgeRefusedError",
    "ForgeUnauthorizedError",
    "ForgeUnreachableError",
    "WebhookForgedError",
    "WebhookRefusedError",
]


class ForgeError(StackyardError):
    """A request to a forge failed.

    Args:
        detail: What failed, with the request and what the forge said of it.
        status: The status of HTTP; 0 where there was no answer.
        remedy: What to do, where the instance knows better than its class.
    """

    code = "E-FORGE"
    summary = "A request to the forge failed"
    default_remedy = "Read what the forge answered, correct it and run the command again."

    def __init__(self, detail: str, *, status: int = 0, remedy: str | None = None) -> None:
        super().__init__(detail, remedy=remedy)
        self.status = status


class ForgeUnreachableError(ForgeError):
    """No answer came, or one of a forge that is not well."""

    code = "E-FORGE-UNREACHABLE"
    summary = "The forge cannot be reached"
    default_remedy = (
        "Check the address of the forge, the network and the certificate, then run the command again."
    )
    exit_status = ExitStatus.UNREACHABLE


class ForgeUnauthorizedError(ForgeError):
    """The forge does not accept the token, or the token may not do what was asked for."""

    code = "E-FORGE-LOGIN"
    summary = "The forge does not accept the token for this"
    default_remedy = (
        "Check that the token is of this forge, has not expired, and has the scopes that the how-to of the "
        "forge lists."
    )


class ForgeNotFoundError(ForgeError):
    """There is no such thing on the forge, or the token may not see it."""

    code = "E-FORGE-MISSING"
    summary = "The forge does not have what was asked for"
    default_remedy = (
        "Check the name of the repository and the number. Forges also say this of what a token may not see."
    )


class ForgeRateLimitedError(ForgeError):
    """The forge wants fewer requests; it did nothing.

    Args:
        detail: What the forge said.
        retry_after_s: After how many seconds it may be asked again.
        status: The status of HTTP.
    """

    code = "E-FORGE-LIMIT"
    summary = "The forge wants fewer requests"
    default_remedy = "Run the command again later, or use a token that the forge gives more requests to."
    exit_status = ExitStatus.BUSY

    def __init__(self, detail: str, *, retry_after_s: float, status: int = 0) -> None:
        super().__init__(detail, status=status)
        self.retry_after_s = retry_after_s


class ForgeConflictError(ForgeError):
    """Something on the forge is no longer as the request expects: the pull request has another head."""

    code = "E-FORGE-CONFLICT"
    summary = "Something on the forge has changed in between"
    default_remedy = "Look at the pull request, and run the command again for what it is now."


class ForgeRefusedError(ForgeError):
    """The forge refuses what a request asks for."""

    code = "E-FORGE-REFUSED"
    summary = "The forge refuses a request"
    default_remedy = "The message is that of the forge: correct what it names, and run the command again."


class ForgeAnswerError(ForgeError):
    """The answer is not one of this kind of forge: another program, a login page, or another version."""

    code = "E-FORGE-ANSWER"
    summary = "The forge answers with something else"
    default_remedy = (
        "Open the address in a browser: another program, a login page or a proxy may answer there. Check "
        "that the kind of the forge is the right one."
    )


class WebhookRefusedError(ForgeError):
    """A delivery of a webhook is not from the forge, was cut off, or is not understood."""

    code = "E-FORGE-WEBHOOK"
    summary = "A delivery of a webhook is refused"
    default_remedy = (
        "Check that the webhook of the repository has the secret of this server, sends JSON, and leads here "
        "without a proxy that changes what is sent."
    )


class WebhookForgedError(WebhookRefusedError):
    """A delivery has no signature, or one that was not made with the secret of this server."""

    code = "E-FORGE-WEBHOOK-FORGED"
    summary = "A delivery of a webhook is not from the forge"
