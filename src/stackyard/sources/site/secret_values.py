"""The secrets of a site, from whichever of its files holds them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind
from stackyard.base.errors import Location, StackyardError
from stackyard.base.redaction import Redactor
from stackyard.secrets import SecretsKind, read_secrets
from stackyard.sources.site.document import format_path
from stackyard.sources.site.entities.secrets import SecretsFile
from stackyard.sources.site.tree import validate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.secrets import Secrets
    from stackyard.sources.site.document import Key, LocatedValues

__all__ = ["SECRETS_FILES", "SiteSecrets", "find_secrets_file", "read_site_secrets"]

# The second is how the older layout keeps the encrypted copy of the first.
SECRETS_FILES = ("secrets.yaml", "secrets.yaml.enc")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteSecrets:
    """What the secrets file says.

    Attributes:
        model: Its values; none where there is no file.
        places: The file; nothing where there is none.
        is_known: Whether it could be read and is right, so that what is not in it does not exist.
    """

    model: SecretsFile = field(default_factory=SecretsFile, repr=False)
    places: LocatedValues | None = None
    is_known: bool = False

    @property
    def is_absent(self) -> bool:
        """Whether there is no such file."""
        return self.places is None

    def values(self) -> Iterator[tuple[str, str]]:
        """Return every secret by its name, as `passwords.vm_root`; public keys are none."""
        model = self.model
        auth = model.auth
        yield from ((f"api_tokens.{name}", token) for name, token in model.api_tokens.items())
        yield from ((f"passwords.{name}", password) for name, password in model.passwords.items())
        yield from ((f"auth.node_tokens.{name}", token) for name, token in auth.node_tokens.items())
        yield from ((f"variables.{name}", value) for name, value in model.variables.items())
        if model.site_key is not None:
            yield "site_key", model.site_key
        for name in ("site_token", "signing_key", "repo_token"):
            value = getattr(auth, name)
            if value is not None:
                yield f"auth.{name}", value

    def redactor(self) -> Redactor:
        """Return what masks every one of its values in any text."""
        secret = [value for _, value in self.values()]
        # Of an API token, what follows its name is secret by itself.
        tails = [token.partition("=")[2] for token in self.model.api_tokens.values()]
        return Redactor([*secret, *tails])


class _SecretLocations:
    """The places of a secrets file, in the words of this package."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self.path = str(secrets.path)
        self.data: dict[str, Any] = _without_comments(secrets.data)

    def place(self, keys: Sequence[Key] = ()) -> Location:
        """Return where a value is, or the nearest place above it that the file has."""
        return self._secrets.place(*keys)

    def key_place(self, keys: Sequence[Key]) -> Location:
        """Return where the key of a value is."""
        return self._secrets.key_place(*keys)


class _LockedLocations:
    """A secrets file that cannot be read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.data: dict[str, Any] = {}

    def place(self, keys: Sequence[Key] = ()) -> Location:
        """Return the file."""
        del keys
        return Location(self.path)

    def key_place(self, keys: Sequence[Key]) -> Location:
        """Return the file."""
        return self.place(keys)


def find_secrets_file(root: Path) -> Path:
    """Return the file of the secrets of a site: the one that is there, or the one to make."""
    return next((root / name for name in SECRETS_FILES if (root / name).exists()), root / SECRETS_FILES[0])


def read_site_secrets(root: Path, found: Diagnostics) -> SiteSecrets:
    """Read the secrets of a site; whatever is wrong becomes a finding, and never a lack of secrets."""
    path = find_secrets_file(root)
    shown = format_path(path)
    try:
        secrets = read_secrets(Path(shown))
    except StackyardError as err:
        kind = Kind(code=err.code, summary=err.summary, remedy=err.remedy)
        findings = [(finding.kind, finding.detail, finding.where) for finding in err.diagnostics]
        for one in findings or [(kind, err.detail, err.where or Location(shown))]:
            found.add(*one)
        return SiteSecrets(places=_LockedLocations(shown))
    if secrets.kind is SecretsKind.ABSENT:
        return SiteSecrets()
    places = _SecretLocations(secrets)
    model = validate(SecretsFile, places, found, is_secret=True)
    if model is None:
        return SiteSecrets(places=places)
    return SiteSecrets(model=model, places=places, is_known=True)


def _without_comments(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_comments(part) for key, part in value.items() if not str(key).startswith("_")}
    return [_without_comments(part) for part in value] if isinstance(value, list) else value
