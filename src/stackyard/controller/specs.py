"""The specs of a site as clients get them: found by identity, resolved, and rendered once.

A site with problems is served as far as it goes: a spec that is wrong is refused by itself, and nothing
becomes more open because something could not be read.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.controller.refusals import Code, RequestRefusedError
from stackyard.sources.site.apply_script import apply_script
from stackyard.sources.site.discovery import SITE_FILE, find_site
from stackyard.sources.site.load import Site
from stackyard.sources.site.postures import is_posture_known
from stackyard.sources.site.pull import Caller, auth_method, callers
from stackyard.sources.site.secret_values import SECRETS_FILES
from stackyard.sources.site.specs import resolve_spec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.base.diagnostics import Diagnostic
    from stackyard.sources.site.entities.postures import AuthMethod
    from stackyard.sources.site.entities.secrets import AuthSecrets

__all__ = ["Format", "SpecCollection", "SpecRequest", "open_book"]

_IDENTITY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}")


class Format(enum.StrEnum):
    """How a spec is written down."""

    JSON = "json"
    YAML = "yaml"
    SHELL = "shell"

    @property
    def content_type(self) -> str:
        """What HTTP calls it."""
        return {"json": "application/json", "yaml": "application/yaml", "shell": "text/x-shellscript"}[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecRequest:
    """A spec that someone asks for: by which name, which one, and how they have to prove themselves."""

    identity: str
    spec: str
    method: AuthMethod


def open_book(said: Path | str | None, guests: Mapping[str, str] = MappingProxyType({})) -> SpecCollection:
    """Read a site for serving.

    Args:
        said: Its folder; found as usual when absent.
        guests: The specs of guests that its files need not name, by the names of the guests.

    Raises:
        SiteNotFoundError: There is none.
        InvalidInputError: site.yaml or the secrets cannot be read: no client could be recognised.
    """
    site = Site.open(find_site(said))
    fatal = [finding for finding in site.found.errors if _is_fatal(site, finding)]
    if fatal:
        site.found.raise_errors(f"The site {site.root}")
    return SpecCollection(site, guests)


def _is_fatal(site: Site, finding: Diagnostic) -> bool:
    path = "" if finding.where is None else finding.where.path
    name = path.rpartition("/")[2]
    is_locked = not (site.secrets.is_known or site.secrets.is_absent)
    return (site.file is None and name == SITE_FILE) or (is_locked and name in SECRETS_FILES)


class SpecCollection:
    """The specs of one reading of a site.

    Args:
        site: The site.
        guests: The specs of guests that its files need not name; they go before all others.
    """

    def __init__(self, site: Site, guests: Mapping[str, str] = MappingProxyType({})) -> None:
        self.site = site
        given = {name: Caller(identity=name, specs=(spec,)) for name, spec in guests.items()}
        self._callers: Mapping[str, Caller] = {**callers(site), **given}
        self._rendered: dict[tuple[str, Format], bytes] = {}

    @property
    def names(self) -> list[str]:
        """The names of all specs, broken ones too."""
        return sorted({*self.site.specs, *self.site.broken["specs"]})

    @property
    def auth(self) -> AuthSecrets:
        """The tokens of the site."""
        return self.site.secret_values.auth

    def find(self, identity: str) -> SpecRequest:
        """Return the spec that someone asks for by name.

        Raises:
            RequestRefusedError: That is no name, no one has it, or what it leads to cannot be served.
        """
        if not _IDENTITY.fullmatch(identity):
            raise RequestRefusedError(400, Code.BAD_IDENTITY, "That cannot be the name of a guest or a spec.")
        caller = self._callers.get(identity)
        if caller is None:
            raise RequestRefusedError(404, Code.NOT_FOUND, f"There is no spec for '{identity}'.")
        if len(caller.specs) > 1:
            detail = f"Guests named '{identity}' have different specs: {', '.join(caller.specs)}."
            raise RequestRefusedError(422, Code.INVALID_SPEC, detail)
        return self._usable(identity, caller.specs[0])

    def _usable(self, identity: str, spec: str) -> SpecRequest:
        if spec in self.site.broken["specs"]:
            raise RequestRefusedError(422, Code.INVALID_SPEC, f"The spec '{spec}' is not valid.")
        if spec not in self.site.specs:
            raise RequestRefusedError(404, Code.NOT_FOUND, f"There is no spec '{spec}'.")
        posture = self.site.specs[spec].model.access.posture
        if not is_posture_known(self.site, posture):
            # Without it no one knows who may ask; nothing of the spec is sent.
            detail = f"There is no posture '{posture}', or it is not valid."
            raise RequestRefusedError(404, Code.POSTURE_NOT_FOUND, detail)
        return SpecRequest(identity=identity, spec=spec, method=auth_method(self.site, spec))

    def document(self, wanted: SpecRequest) -> dict[str, Any]:
        """Return a spec with nothing left to look up, for one identity.

        Raises:
            RequestRefusedError: It names a key that the site does not have.
        """
        model, known = self.site.specs[wanted.spec].model, self.site.secret_values.ssh_keys
        for user in model.access.users:
            for key in user.ssh_keys or ():
                if key.removeprefix("ssh_keys.") not in known:
                    raise RequestRefusedError(404, Code.KEY_NOT_FOUND, f"There is no key '{key}'.")
        return resolve_spec(self.site, wanted.spec, guest=wanted.identity)

    def render(self, wanted: SpecRequest, form: Format) -> bytes:
        """Return a spec as its client requests it."""
        key = (wanted.identity, form)
        known = self._rendered.get(key)
        if known is None:
            known = self._rendered[key] = _render(self.document(wanted), form)
        return known


def _render(document: dict[str, Any], form: Format) -> bytes:
    if form is Format.JSON:
        return orjson.dumps(document)
    if form is Format.SHELL:
        return apply_script(document).encode()
    import yaml  # lazy: guests ask for JSON or the script

    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True).encode()
