"""Looking through the index of a repository for secrets in clear."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostic, Kind
from stackyard.base.errors import Location, StackyardError
from stackyard.clients import git
from stackyard.clients.git.hook import upgrade_hook
from stackyard.secrets.check.file_forms import find_file_forms
from stackyard.secrets.check.patterns import ALLOWED, find_secrets
from stackyard.secrets.check.promises import CONFIG_NAME, configs_of, find_broken_promises

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackyard.secrets.sops.config import SopsConfig

__all__ = [
    "ATTRIBUTE",
    "HOOK_CHECK",
    "LARGEST_BYTES",
    "PlaintextSecretsError",
    "ScanSummary",
    "check_file",
    "check_repository",
    "check_texts",
    "holds_secret",
]

# What git is to run before each commit.
HOOK_CHECK = "secrets check --staged"

# What `.gitattributes` says of a file that may be committed as it is.
ATTRIBUTE = "stackyard-allow-secret"
# Larger files are data; no key or token needs as much.
LARGEST_BYTES = 2 * 2**20
# How many lines at the top of a file may say that all of it is allowed.
_TOP_LINES = 5

NOT_ENCRYPTED = Kind(
    code="E-SECRETS-IN-CLEAR",
    summary="A file or value that must be encrypted is in clear",
    remedy="Encrypt it with `stackyard secrets encrypt FILE`, and `git add` it again.",
)
LOOKS_SECRET = Kind(
    code="E-SECRETS-FOUND",
    summary="A secret is in clear",
    remedy=f"Move it into an encrypted file; if it is no secret, say `{ALLOWED}` on its line.",
)
NOT_FOR_GIT = Kind(
    code="E-SECRETS-FILE",
    summary="A file that holds secrets would be committed",
    remedy="Take it out with `git rm --cached FILE`, and add it to .gitignore. If it holds none, such as a "
    f"state for tests, set the attribute `{ATTRIBUTE}` for it in .gitattributes.",
)


class PlaintextSecretsError(StackyardError):
    """Files that git would commit hold secrets in clear; each place is named, the secrets are not."""

    code = "E-SECRETS-PLAINTEXT"
    summary = "Secrets would be committed in clear"
    default_remedy = (
        "What was ever pushed must be replaced at its service: removing it from git is not enough."
    )

    def __init__(self, detail: str, findings: tuple[Diagnostic, ...]) -> None:
        super().__init__(detail)
        self._findings = findings

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Every place that was found."""
        return self._findings


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanSummary:
    """How much was looked through."""

    files: int
    findings: tuple[Diagnostic, ...]

    def raise_findings(self) -> None:
        """Raise an error with all findings, if there are any."""
        if self.findings:
            places = "1 place" if len(self.findings) == 1 else f"{len(self.findings)} places"
            raise PlaintextSecretsError(
                f"{places} in {self.files} files must not be committed.", self.findings
            )


async def check_repository(folder: Path, *, is_staged_only: bool = False) -> ScanSummary:
    """Look through the files of a repository as they would be committed, whatever the working tree holds.

    Args:
        folder: Where to start from.
        is_staged_only: Whether to look only at what the next commit adds or changes.

    Raises:
        GitError: There is no repository.
        SopsConfigError: A `.sops.yaml` is not valid.
    """
    repository = await git.require_repository(folder)
    upgrade_hook(repository)
    index = await repository.index()
    wanted = await repository.list_staged() if is_staged_only else index
    settings = [entry for entry in index if PurePosixPath(entry.path).name == CONFIG_NAME]
    texts = await repository.contents((one.blob for one in (*settings, *wanted)), largest_bytes=LARGEST_BYTES)
    configs = configs_of({one.path: texts[one.blob] for one in settings if one.blob in texts})
    read = {one.path: texts[one.blob] for one in wanted if one.blob in texts}
    large = [one.path for one in wanted if one.blob not in texts]
    found = {path: check_file(path, text, configs) for path, text in read.items()}
    found |= {path: check_file(path, None, configs) for path in large}
    marked = [path for path, findings in found.items() if findings]
    allowed = await repository.list_marked(marked, ATTRIBUTE) if marked else ()
    kept = (findings for path, findings in sorted(found.items()) if path not in allowed)
    return ScanSummary(files=len(found), findings=tuple(one for findings in kept for one in findings))


def check_texts(
    texts: Mapping[str, str], configs: Mapping[PurePosixPath, SopsConfig]
) -> tuple[Diagnostic, ...]:
    """Return every place in some files that must not be in clear."""
    found = [one for path, text in sorted(texts.items()) for one in _check(path, text, configs)]
    return tuple(found)


def holds_secret(path: str, text: str, configs: Mapping[PurePosixPath, SopsConfig]) -> bool:
    """Return whether a file has a place that must not be in clear; looks no further than the first."""
    return _is_looked_at(text) and any(True for _ in _findings(path, text, configs))


def _check(path: str, text: str, configs: Mapping[PurePosixPath, SopsConfig]) -> Sequence[Diagnostic]:
    return tuple(_findings(path, text, configs)) if _is_looked_at(text) else ()


def check_file(
    path: str, text: str | None, configs: Mapping[PurePosixPath, SopsConfig]
) -> tuple[Diagnostic, ...]:
    """Return everything about a file, and one thing about each line; `text` is None for one too large."""
    found = _check(path, text, configs) if text is not None else ()
    lines = {one.where.line for one in found if one.where is not None}
    forms = (one for one in _check_form(path, text) if one.where is None or one.where.line not in lines)
    return (*found, *forms)


def _check_form(path: str, text: str | None) -> tuple[Diagnostic, ...]:
    """Return why a file must not be committed for what it is, whatever is in it."""
    if text is not None and _says_allowed(text):
        return ()
    forms = find_file_forms(path, text)
    return tuple(
        Diagnostic(kind=NOT_FOR_GIT, detail=f"This is {what}.", where=Location(_shown(path), line))
        for line, what in forms
    )


def _shown(path: str) -> str:
    """Return the name of a file as it can be printed, whatever its bytes are."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _is_looked_at(text: str) -> bool:
    """Return whether a file is a text, and does not say at its top that all of it is allowed."""
    if "\0" in text[:8000]:
        return False
    return not _says_allowed(text)


def _says_allowed(text: str) -> bool:
    return any(ALLOWED in line for line in text.split("\n", _TOP_LINES)[:_TOP_LINES])


def _findings(path: str, text: str, configs: Mapping[PurePosixPath, SopsConfig]) -> Iterator[Diagnostic]:
    for line, reason in find_broken_promises(path, text, configs):
        detail = f"{_shown(path)} is in clear: {reason}."
        yield Diagnostic(kind=NOT_ENCRYPTED, detail=detail, where=Location(_shown(path), line))
    for match in find_secrets(text):
        yield Diagnostic(
            kind=LOOKS_SECRET,
            detail=f"This looks like {match.name}.",
            where=Location(_shown(path), match.line),
        )
