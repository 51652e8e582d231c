"""What is wrong with a configuration, by attribute, and errors of our own as the engine shows them."""

from __future__ import annotations

from dataclasses import dataclass

from stackyard.base.errors import InvalidInputError

__all__ = ["NEWER_NAME", "AttributeValueError", "ImportIdError", "Path", "Problem", "ProviderSettingsError"]

# The summary of a warning about the former name of a resource.
NEWER_NAME = "There is a newer name"

# Where an attribute is: names, and the numbers of elements.
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A finding about one attribute, or about the whole when the path is empty."""

    detail: str
    path: Path = ()
    summary: str = "The configuration is not valid"
    is_error: bool = True


class AttributeValueError(InvalidInputError):
    """An attribute of a resource has a value that cannot be performed.

    Args:
        detail: What is wrong.
        path: Which attribute.
    """

    code = "E-PROVIDER-ATTRIBUTE"
    summary = "An attribute has a value that cannot be performed"
    default_remedy = "Correct the attribute that is named."

    def __init__(self, detail: str, path: Path = ()) -> None:
        super().__init__(detail)
        self.path = path


class ImportIdError(InvalidInputError):
    """The id given to an import does not have the form that the resource needs."""

    code = "E-PROVIDER-IMPORT-ID"
    summary = "The id of the import does not fit"
    default_remedy = "Give the id in the form that is named."


class ProviderSettingsError(InvalidInputError):
    """The settings of the built-in provider lack something or contradict each other."""

    code = "E-PROVIDER-SETTINGS"
    summary = "The settings of the Proxmox provider are not usable"
    default_remedy = (
        "Set the endpoint and a token or a user with a password, in the configuration or the environment."
    )
