"""Reports as files of one folder."""

from __future__ import annotations

import contextlib
import itertools
import os
from typing import TYPE_CHECKING

import orjson

from stackyard.base.errors import FileError
from stackyard.base.files import replace_file
from stackyard.base.redaction import NOTHING_SECRET
from stackyard.operator.reports.junit import as_junit
from stackyard.operator.reports.markdown import as_markdown
from stackyard.operator.reports.model import report_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stackyard.base.redaction import Redactor
    from stackyard.operator.outcome import RunOutcome
    from stackyard.operator.reports.model import Report

__all__ = ["write_report", "write_reports"]

# Build servers read them as someone else; nothing in them is secret.
_READABLE = 0o644
_ENDINGS = ("md", "json", "xml")


def write_reports(
    outcome: RunOutcome, folder: Path, *, redactor: Redactor = NOTHING_SECRET
) -> tuple[Path, ...]:
    """Write the reports of a run over a manifest; as `write_report`."""
    return write_report(report_of(outcome), folder, redactor=redactor)


def write_report(report: Report, folder: Path, *, redactor: Redactor = NOTHING_SECRET) -> tuple[Path, ...]:
    """Write a report as `YYYYMMDD-HHMMSS.passed.md`, `.json` and `.xml` (or `.failed.`), by its start in UTC.

    None is written over: where there is one of that second, the name gets a number. Each appears whole.

    Args:
        report: What to say.
        folder: Where; made if need be.
        redactor: Masks what must not be in them.

    Raises:
        FileError: The folder cannot be created or written.
    """
    # Bytes of other programs that were no UTF-8 cannot be written as such.
    shown = report.redact(lambda text: redactor(text).encode(errors="replace").decode())
    texts = (
        as_markdown(shown).encode(),
        orjson.dumps(shown.document(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE),
        as_junit(shown),
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise FileError.from_os_error(err, "make the folder", folder) from err
    with _claim_names(folder, f"{shown.began:%Y%m%d-%H%M%S}") as stem:
        paths = tuple(folder / f"{stem}.{shown.verdict}.{ending}" for ending in _ENDINGS)
        for path, text in zip(paths, texts, strict=True):
            replace_file(path, text, mode=_READABLE)
    return paths


@contextlib.contextmanager
def _claim_names(folder: Path, wanted: str) -> Iterator[str]:
    """Give a beginning of names that no one has, and that no one else is given meanwhile."""
    for number in itertools.count(1):
        stem = wanted if number == 1 else f"{wanted}-{number}"
        claim = folder / f".{stem}.claim"
        try:
            os.close(os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            continue
        except OSError as err:
            raise FileError.from_os_error(err, "write", claim) from err
        try:
            if not any(folder.glob(f"{stem}.*")):
                yield stem
                return
        finally:
            claim.unlink()
