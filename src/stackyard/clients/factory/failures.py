"""What can go wrong with an image factory."""

from __future__ import annotations

from stackyard.base.errors import ExitStatus, StackyardError

__all__ = [
    "FactoryAnswerError",
    "FactoryError",
    "FactoryRedirectError",
    "FactoryRefusedError",
    "FactorySlowError",
    "FactoryUnreachableError",
    "ImageContentError",
    "ImageIncompleteError",
    "SchematicIdError",
    "SchematicUnknownError",
]


class FactoryError(StackyardError):
    """A request to the image factory failed."""

    code = "E-FACTORY"
    summary = "The image factory reports an error"
    default_remedy = "Check `talos_factory` and the versions of the cluster, then run the command again."


class FactoryAnswerError(FactoryError):
    """What answers at the address of the image factory is none: a page of a proxy, or another server."""

    code = "E-FACTORY-ANSWER"
    summary = "What answers is not an image factory"
    default_remedy = "Check `talos_factory`; open the address in a browser to see what answers there."


class FactoryUnreachableError(FactoryError):
    """No connection to the image factory, or it broke before an answer."""

    code = "E-FACTORY-UNREACHABLE"
    summary = "The image factory cannot be reached"
    default_remedy = (
        "Check the network, the proxy of the environment and `talos_factory`. Without a way to the Internet, "
        "set `talos_factory` to a mirror."
    )
    exit_status = ExitStatus.UNREACHABLE


class FactorySlowError(FactoryError):
    """The image factory did not answer, or sent nothing more, within the time for it."""

    code = "E-FACTORY-SLOW"
    summary = "The image factory did not answer in time"
    default_remedy = (
        "Run the command again: a factory builds an image at its first request, and then keeps it. "
        "Where that does not help, set `talos_factory` to a mirror that is nearer."
    )
    exit_status = ExitStatus.UNREACHABLE


class FactoryRefusedError(FactoryError):
    """The image factory answers with an error.

    Args:
        detail: What it says.
        status: The status of HTTP.
        remedy: What to do, where the status says more than the class.
    """

    code = "E-FACTORY-REFUSED"
    summary = "The image factory refuses a request"
    default_remedy = "The message is that of the factory: correct what it names, and run the command again."

    def __init__(self, detail: str, status: int, *, remedy: str | None = None) -> None:
        super().__init__(detail, remedy=remedy)
        self.status = status


class SchematicUnknownError(FactoryError):
    """The image factory has no image: nobody registered the schematic there, or it lacks the version."""

    code = "E-FACTORY-NO-IMAGE"
    summary = "The image factory does not have an image"
    default_remedy = (
        "An id alone cannot be registered. Describe the schematic as `talos_schematic` in cluster.yaml, so "
        "that `stackyard cluster images --pin` registers it, or select its extensions on the page of the "
        "factory. Check that `talos_version` is released."
    )


class SchematicIdError(FactoryError):
    """The image factory gives a schematic another id than the one that follows from its content."""

    code = "E-FACTORY-OTHER-ID"
    summary = "The image factory gives a schematic another id"
    default_remedy = (
        "The factory adds to schematics or knows fields that stackyard does not. Set `schematic_id` to its "
        "id, and remove `talos_schematic`."
    )


class FactoryRedirectError(FactoryError):
    """A request leads from address to address without an end, or to one without encryption."""

    code = "E-FACTORY-REDIRECTS"
    summary = "The image factory redirects to nothing that can be used"
    default_remedy = "Check `talos_factory`, and the proxy or mirror in front of it."


class ImageIncompleteError(FactoryError):
    """The download of an image ended before its end, or has more bytes than were announced."""

    code = "E-FACTORY-INCOMPLETE"
    summary = "An image was not downloaded completely"
    default_remedy = "Run the command again; nothing of the download was kept."


class ImageContentError(FactoryError):
    """What was downloaded is no image: a page of a proxy, or other bytes."""

    code = "E-FACTORY-CONTENT"
    summary = "What the image factory sends is not an image"
    default_remedy = (
        "Open the address in a browser: a proxy or a login page may answer in place of the factory."
    )
