"""The whole gate, in its order: words, shape, references, values. All that is wrong comes at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.errors import InvalidInputError
from stackyard.desired import Desired, Secrets
from stackyard.sources.deployment.build import build, password_name
from stackyard.sources.deployment.checks import SECRET, check_references
from stackyard.sources.deployment.model import ParsedDeployment, parse_deployment
from stackyard.sources.deployment.schema import OwnSchema, check_schema
from stackyard.sources.deployment.text import ObjectText, strip_comments
from stackyard.sources.deployment.words import check_words, report_ignored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stackyard.sources.deployment.layer import Layer

__all__ = ["Rules", "ValidatedObject", "check"]

ENVIRONMENT = Kind(
    code="E-DEPLOYMENT-ENVIRONMENT",
    summary="The object is of another environment",
    remedy="Point at the right object, or correct `environment` in it or in deployment.yaml.",
)
_PRIVATE_KEY = "PRIVATE KEY-----"


def _no_data(name: str) -> str:
    raise InvalidInputError(f"{name} is not at hand here.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What an object is held against, besides the shipped contract.

    Attributes:
        own: The user's own schema.
        environment: The environment that it has to be of; any when absent.
        layer: The secrets that are merged under it.
        read_data: Returns the text of a file of cloud-init that a guest names.
    """

    own: OwnSchema | None = None
    environment: str | None = None
    layer: Layer | None = None
    read_data: Callable[[str], str] = _no_data


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatedObject:
    """An object that went through the gate.

    Attributes:
        document: As it was written.
        found: All that was found, warnings too.
        understood: Its guests; None where its shape is wrong.
        desired: The model; None where anything is wrong.
        secrets: The values of the secrets that the model names.
    """

    document: ObjectText
    found: Diagnostics
    understood: ParsedDeployment | None = None
    desired: Desired | None = None
    secrets: Secrets = field(default_factory=Secrets)

    def require(self) -> ParsedDeployment:
        """Return the object, if nothing is wrong with it.

        Raises:
            InvalidInputError: With every finding.
        """
        self.found.raise_errors(self.document.label)
        if self.understood is None:
            raise InvalidInputError(f"{self.document.label} is not valid.")
        return self.understood


def check(document: ObjectText, rules: Rules | None = None) -> ValidatedObject:
    """Hold an object against everything that it must meet; nothing is raised, all is reported."""
    held = rules or Rules()
    found = Diagnostics()
    data: dict[str, Any] = strip_comments(document.data)
    for path in _list_secret_paths(data):
        found.add(SECRET, f"`{'.'.join(map(str, path))}` holds a secret in clear.", document.place(path))
    if held.layer is not None:
        data = held.layer.merge_under(data)
    ignored = check_words(document, data, found)
    try:
        return _check_document(document, data, held, found)
    finally:
        # Behind all that is wrong: of all findings this one can wait.
        report_ignored(document, ignored, found)


def _check_document(
    document: ObjectText, data: dict[str, Any], held: Rules, found: Diagnostics
) -> ValidatedObject:
    check_schema(document, data, held.own, found)
    is_shaped = not any(finding.kind.code == "E-DEPLOYMENT-SCHEMA" for finding in found.errors)
    if not is_shaped or any(finding.kind.code == "E-DEPLOYMENT-NO-ENTRY" for finding in found.errors):
        return ValidatedObject(document=document, found=found)
    understood = parse_deployment(data)
    _check_environment(understood, document, held, found)
    check_references(understood, document, found)
    if found.errors:
        return ValidatedObject(document=document, found=found, understood=understood)
    desired = build(understood, document, found, read_data=held.read_data)
    secrets = Secrets(dict(_passwords(understood)))
    return ValidatedObject(
        document=document, found=found, understood=understood, desired=desired, secrets=secrets
    )


def _check_environment(
    understood: ParsedDeployment, document: ObjectText, rules: Rules, found: Diagnostics
) -> None:
    said = understood.scope.environment
    if rules.environment is not None and said != rules.environment:
        text = f"The object is of the environment `{said}`, and `{rules.environment}` is expected here."
        found.add(ENVIRONMENT, text, document.place(("environment",)))


def _passwords(understood: ParsedDeployment) -> Iterator[tuple[str, str]]:
    for guest in understood.guests:
        password = (guest.fields.get("user_account") or {}).get("password")
        if password:
            yield password_name(guest), str(password)


def _list_secret_paths(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Return where the object itself holds passwords of guests and private keys."""
    if isinstance(data, dict):
        for key, value in data.items():
            if key == "password" and isinstance(value, str) and value:
                yield (*path, key)
            else:
                yield from _list_secret_paths(value, (*path, key))
    elif isinstance(data, list):
        for place, value in enumerate(data):
            yield from _list_secret_paths(value, (*path, place))
    elif isinstance(data, str) and _PRIVATE_KEY in data:
        yield path
