"""What can go wrong with a request to a Kubernetes API, each with the request and what the server answered.

::

    StackyardError
    ├── KubernetesError                   a request failed
    │   ├── KubernetesRefusedError        the API server answered with an error
    │   │   ├── ObjectMissingError        there is no such object
    │   │   ├── KubernetesLoginError      wrong, expired or missing credentials
    │   │   ├── KubernetesForbiddenError  the user may not do that
    │   │   ├── FieldConflictError        another manager owns a field with another value
    │   │   └── ObjectRejectedError       the object does not fit its schema
    │   ├── KindUnknownError              the API server does not serve such a kind
    │   ├── WatchExpiredError             a watch is too old to be resumed
    │   └── WaitTimeoutError              what was waited for did not come
    ├── UnreachableError
    │   └── KubernetesUnreachableError    no answer came
    └── InvalidInputError
        └── KubeconfigError               a kubeconfig cannot be used
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError, StackyardError, UnreachableError
from stackyard.base.visible import on_one_line

if TYPE_CHECKING:
    from stackyard.clients.kubernetes.references import ObjectReference

__all__ = [
    "Cause",
    "FieldConflictError",
    "KindUnknownError",
    "KubeconfigError",
    "KubernetesError",
    "KubernetesForbiddenError",
    "KubernetesLoginError",
    "KubernetesRefusedError",
    "KubernetesUnreachableError",
    "ObjectMissingError",
    "ObjectRejectedError",
    "Request",
    "Status",
    "WaitTimeoutError",
    "WatchExpiredError",
    "make_refused_error",
]

_LONGEST_MESSAGE = 4_000


@dataclass(frozen=True, slots=True)
class Request:
    """Which request it was; its body is left out, since it may hold secrets."""

    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One of the reasons why the API server refused an object.

    Attributes:
        reason: The kind of reason, as Kubernetes names it: `FieldManagerConflict`, `FieldValueInvalid`.
        message: The reason in words.
        field: The field at fault, empty where it is none.
    """

    reason: str
    message: str
    field: str = ""

    def __str__(self) -> str:
        said = on_one_line(self.message)
        return f"{on_one_line(self.field)}: {said}" if self.field else said


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What the API server answered instead of an object.

    Attributes:
        code: The HTTP status.
        reason: Why, in one word of Kubernetes: `Conflict`, `Invalid`.
        message: Why, in words.
        causes: The single reasons, where it gave them.
        retry_after_s: After how long it wants to be asked again, where it says so.
    """

    code: int
    reason: str
    message: str
    causes: tuple[Cause, ...] = ()
    retry_after_s: float | None = None

    def __str__(self) -> str:
        return f"{self.code} {on_one_line(self.message or self.reason)}".strip()[:_LONGEST_MESSAGE]


class KubernetesError(StackyardError):
    """A request to a Kubernetes API failed."""

    code = "E-KUBERNETES"
    summary = "A request to Kubernetes failed"
    default_remedy = "Read what the API server answered, correct it and run the command again."


class KubernetesRefusedError(KubernetesError):
    """The API server answered a request with an error; it changed nothing.

    Args:
        request: Which request.
        status: What was answered.
        detail: What happened, where the class knows it better.
    """

    code = "E-KUBERNETES-REFUSED"
    summary = "Kubernetes refused a request"

    def __init__(self, request: Request, status: Status, detail: str | None = None) -> None:
        super().__init__(detail or f"{request} was refused: {status}.")
        self.request = request
        self.status = status


class ObjectMissingError(KubernetesRefusedError):
    """There is no such object."""

    code = "E-KUBERNETES-MISSING"
    summary = "An object does not exist in Kubernetes"
    default_remedy = "Check its name and its namespace. If its namespace is missing, create that first."


class KubernetesLoginError(KubernetesRefusedError):
    """The API server does not accept the credentials."""

    code = "E-KUBERNETES-LOGIN"
    summary = "Kubernetes does not accept the credentials"
    default_remedy = (
        "The certificate or token of the kubeconfig may have expired, or belong to another cluster. "
        "Get a new kubeconfig from the cluster."
    )


class KubernetesForbiddenError(KubernetesRefusedError):
    """The user of the kubeconfig may not do what was asked; the object may or may not exist."""

    code = "E-KUBERNETES-FORBIDDEN"
    summary = "Kubernetes does not allow a request"
    default_remedy = (
        "Use a kubeconfig of an administrator, or give its user the permission that the answer names."
    )


class FieldConflictError(KubernetesRefusedError):
    """Another field manager owns a field with another value; `status.causes` has each field."""

    code = "E-KUBERNETES-CONFLICT"
    summary = "Another program manages fields of an object"
    default_remedy = (
        "Leave these fields out, or set the same values, or let the other program give them up: nothing is "
        "taken over from another manager."
    )


class ObjectRejectedError(KubernetesRefusedError):
    """The object does not fit its schema or a rule of the cluster; every cause is listed."""

    code = "E-KUBERNETES-INVALID"
    summary = "Kubernetes does not accept an object"
    default_remedy = "Correct every field listed in the file that the object comes from."


class KindUnknownError(KubernetesError):
    """The API server does not serve objects of that kind."""

    code = "E-KUBERNETES-KIND"
    summary = "Kubernetes does not know a kind of object"
    default_remedy = (
        "Apply its CustomResourceDefinition first, or use an apiVersion that this Kubernetes serves."
    )

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f"The cluster does not serve the kind {kind} of {api_version}.")
        self.api_version = api_version
        self.kind = kind


class WatchExpiredError(KubernetesRefusedError):
    """The API server no longer has the changes since a version; the objects must be listed again."""

    code = "E-KUBERNETES-EXPIRED"
    summary = "A watch cannot be resumed"
    default_remedy = "Run the command again: it begins with the objects as they are now."


class WaitTimeoutError(KubernetesError):
    """What was waited for did not come in time.

    Args:
        reference: The object that was watched.
        awaited: What was waited for.
        reason: Why it is not so yet.
        timeout_s: How long it was waited for.
    """

    code = "E-KUBERNETES-WAIT"
    summary = "Something in Kubernetes is not ready in time"
    default_remedy = "Correct what the reason names, then run the command again: it continues from here."

    def __init__(self, reference: ObjectReference, awaited: str, reason: str, timeout_s: float) -> None:
        super().__init__(
            f"{reference} is not {awaited} after {timeout_s:.0f} s: {on_one_line(reason)[:_LONGEST_MESSAGE]}."
        )
        self.reference = reference
        self.reason = reason


class KubernetesUnreachableError(UnreachableError):
    """The API server did not answer.

    Args:
        request: Which request.
        server: The address of the API server.
        reason: Why there is no answer, in words.
    """

    code = "E-KUBERNETES-UNREACHABLE"
    summary = "The Kubernetes API cannot be reached"
    default_remedy = (
        "Check the address in the kubeconfig, the network, and that a control plane node is running. "
        "The command can be run again: it continues from here."
    )

    def __init__(self, request: Request, server: str, reason: str) -> None:
        super().__init__(f"{server} did not answer {request}: {reason}.")
        self.request = request


class KubeconfigError(InvalidInputError):
    """A kubeconfig cannot be read, or has no usable credentials."""

    code = "E-KUBECONFIG"
    summary = "A kubeconfig cannot be used"
    default_remedy = "Get a new kubeconfig from the cluster, or correct the place named."


_BY_CODE: dict[int, type[KubernetesRefusedError]] = {
    400: ObjectRejectedError,
    401: KubernetesLoginError,
    403: KubernetesForbiddenError,
    404: ObjectMissingError,
    410: WatchExpiredError,
    413: ObjectRejectedError,
    422: ObjectRejectedError,
}


_UNTYPED = ("failed to create typed patch object", "failed to convert new object")


def make_refused_error(request: Request, status: Status) -> KubernetesRefusedError:
    """Return the error for an answer, with all its causes."""
    if status.code == 409 and any(cause.reason == "FieldManagerConflict" for cause in status.causes):
        return FieldConflictError(request, status, _list_causes(f"{request} conflicts", status))
    made = _BY_CODE.get(status.code, KubernetesRefusedError)
    # So an API server answers an object that does not fit the types of its schema.
    if status.code == 500 and status.message.startswith(_UNTYPED):
        made = ObjectRejectedError
    if made is ObjectRejectedError and status.causes:
        return made(request, status, _list_causes(f"{request} was refused", status))
    return made(request, status)


def _list_causes(beginning: str, status: Status) -> str:
    return f"{beginning}: {'; '.join(str(cause) for cause in status.causes)}."[:_LONGEST_MESSAGE]
