"""The engine's `-json` stream: one message a line while it works, turned into events.

A `Stream` is the reader of one run. It emits as lines come, and keeps what the caller asks for at the end:
findings, totals, a state that the engine could store nowhere. Every text is masked before it leaves; of
outputs only their number is passed on, never a value.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base import process
from stackyard.base.diagnostics import Severity
from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.base.errors import Location
from stackyard.base.events import (
    ApplyPhase,
    DiagnosticFound,
    Emit,
    LogLevel,
    LogLine,
    PlanCounted,
    ResourceApplied,
    ResourcePlanned,
)
from stackyard.engine.failures import Finding
from stackyard.engine.var_files import NO_VAR_FILES, OpenVarFiles

if TYPE_CHECKING:
    from stackyard.engine.workdir import Workdir

__all__ = ["Stream", "read_finding"]

Message = Mapping[str, Any]

_STRAY_LINES = 20
_CUT_OFF_CHARACTERS = 100
_PHASES = {
    "apply_start": ApplyPhase.STARTED,
    "apply_progress": ApplyPhase.RUNNING,
    "apply_complete": ApplyPhase.DONE,
    "apply_errored": ApplyPhase.FAILED,
}


class Stream:
    """Reads the messages of one run; call it with each line.

    Args:
        workdir: Where the engine runs, and what is secret.
        emit: Takes the events.

    Attributes:
        workdir: Where the engine runs.
        var_files: The variables files that it was given, by the names that it uses for them.
        findings: Every diagnostic so far.
        spoke: Whether a message of the engine was seen.
        counted: The last totals.
        dumped_state: The state that the engine printed because it could store it nowhere.
        stray: The last lines that were no messages, for the error of a run that said nothing else.
    """

    def __init__(self, workdir: Workdir, emit: Emit) -> None:
        self.workdir = workdir
        self._emit = emit
        self.var_files = NO_VAR_FILES
        self._source = workdir.engine.flavour.value
        self.findings: list[Finding] = []
        self.spoke = False
        self.counted: PlanCounted | None = None
        self.dumped_state: bytes | None = None
        self.stray: collections.deque[str] = collections.deque(maxlen=_STRAY_LINES)
        self._readers: dict[str, Callable[[Message], None]] = {
            "diagnostic": self._read_diagnostic,
            "planned_change": self._read_planned_change,
            "change_summary": self._read_change_summary,
            **dict.fromkeys(_PHASES, self._read_apply),
        }

    def __call__(self, stream: process.Stream, line: str) -> None:
        """Read one line of output."""
        if stream is process.Stream.STDERR:
            self._read_stray(line, LogLevel.WARNING)
            return
        try:
            message = parse_json(line, LARGE)
        except JsonError:
            message = None
        if not isinstance(message, dict) or "@message" not in message:
            # Text among the messages: a provisioner, a plugin, or a line cut off by a crash.
            self._read_stray(line, LogLevel.DEBUG)
            return
        self.spoke = True
        self._read(message)

    def _redact(self, text: str) -> str:
        return self.workdir.redactor(self.var_files.translate(text))

    def _read_stray(self, line: str, level: LogLevel) -> None:
        if self.var_files.quotes(line):
            return
        if line.startswith("{") and len(line) > _CUT_OFF_CHARACTERS:
            # A message that is cut off may hold part of a state; its text and time come first and are enough.
            line = line[:_CUT_OFF_CHARACTERS] + "…"
        self.stray.append(self._redact(line))
        self._log(line, level)

    def _read(self, message: Message) -> None:
        reader = self._readers.get(str(message.get("type")), self._read_other)
        try:
            reader(message)
        except (KeyError, TypeError, ValueError, AttributeError):
            # A message of a known type in a form that we do not know; its text still says what happened.
            self._read_other(message)

    def _read_other(self, message: Message) -> None:
        text = str(message["@message"])
        if isinstance(message.get("state"), dict):
            self.dumped_state = orjson.dumps(message["state"], option=orjson.OPT_INDENT_2)
        if message.get("@level") == "error":
            self._emit_diagnostic(Finding(severity=Severity.ERROR, summary=self._redact(text), detail=""))
            return
        self._log(text)

    def _read_diagnostic(self, message: Message) -> None:
        found = read_finding(self.workdir, message["diagnostic"], self.var_files)
        for finding in (found,) if self.workdir.refine is None else self.workdir.refine(found):
            # Two checks of the engine may say the same of one value.
            if finding not in self.findings:
                self._emit_diagnostic(finding)

    def _read_planned_change(self, message: Message) -> None:
        change = message["change"]
        reason = change.get("reason")
        self._emit(
            ResourcePlanned(
                address=self._redact(change["resource"]["addr"]),
                action=str(change["action"]),
                reason=None if reason is None else str(reason),
            )
        )

    def _read_change_summary(self, message: Message) -> None:
        changes = message["changes"]
        self.counted = PlanCounted(
            operation=str(changes["operation"]),
            add=int(changes["add"]),
            change=int(changes["change"]),
            remove=int(changes["remove"]),
            imported=int(changes.get("import", 0)),
        )
        self._emit(self.counted)

    def _read_apply(self, message: Message) -> None:
        hook = message["hook"]
        self._emit(
            ResourceApplied(
                address=self._redact(hook["resource"]["addr"]),
                action=str(hook["action"]),
                phase=_PHASES[message["type"]],
                elapsed_s=float(hook.get("elapsed_seconds", 0.0)),
            )
        )

    def _emit_diagnostic(self, finding: Finding) -> None:
        self.findings.append(finding)
        diagnostic = finding.diagnostic()
        where = finding.where
        self._emit(
            DiagnosticFound(
                severity=finding.severity.value,
                code=diagnostic.kind.code,
                summary=diagnostic.kind.summary,
                detail=finding.detail or finding.summary,
                file=where.path if where else None,
                line=where.line if where else None,
                column=where.column if where else None,
                address=finding.address,
            )
        )

    def _log(self, text: str, level: LogLevel = LogLevel.DEBUG) -> None:
        if text.strip():
            self._emit(LogLine(level=level, source=self._source, text=self._redact(text)))


def read_finding(workdir: Workdir, diagnostic: Message, var_files: OpenVarFiles = NO_VAR_FILES) -> Finding:
    """Read a structured diagnostic, masking secrets; what it quotes of a file is left out.

    Raises:
        KeyError: It has no summary.
    """
    address = diagnostic.get("address")
    where = var_files.locate(_read_place(workdir, diagnostic.get("range")))
    if workdir.locate is not None:
        where = workdir.locate(where, None if not address else str(address))
    return Finding(
        severity=Severity.WARNING if diagnostic.get("severity") == "warning" else Severity.ERROR,
        summary=workdir.redactor(var_files.translate(str(diagnostic["summary"]))),
        detail=workdir.redactor(var_files.translate(str(diagnostic.get("detail") or ""))),
        where=where,
        address=workdir.redactor(str(address)) if address else None,
    )


def _read_place(workdir: Workdir, place: Message | None) -> Location | None:
    if not place or not place.get("filename"):
        return None
    name, start = str(place["filename"]), place.get("start") or {}
    # The engine names a value from the command line or the environment in angle brackets: no file.
    path = name if name.startswith("<") else str(workdir.folder / name)
    return Location(path, _read_number(start.get("line")), _read_number(start.get("column")))


def _read_number(value: object) -> int | None:
    # A place that is not counted in whole numbers is none; truth values are numbers in Python alone.
    return value if isinstance(value, int) and not isinstance(value, bool) else None
