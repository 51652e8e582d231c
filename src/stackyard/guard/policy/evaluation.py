"""Running OPA on a plan and the rules for it.

OPA gets the plan through its standard input, with all that is sensitive masked, and copies of the rules in a
private folder. It gets no environment, and rules can neither use the network nor ask for the environment: the
functions that could are taken out of the language. Whatever keeps OPA from an answer refuses the plan.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base import process
from stackyard.base.diagnostics import Kind
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.errors import StackyardError
from stackyard.base.redaction import NOTHING_SECRET, Redactor
from stackyard.engine.plan_masking import mask_plan
from stackyard.engine.tools.catalogue import OPA
from stackyard.engine.tools.probe import Health
from stackyard.engine.tools.survey import survey
from stackyard.guard.findings import Allowances, Finding
from stackyard.guard.inspection import Verdict
from stackyard.guard.policy.rules import Subject, read_rules
from stackyard.guard.policy.verdict import EVALUATION, read_answer, read_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackyard.guard.policy.rules import RuleSet

__all__ = ["evaluate_policies", "evaluate_repository"]

ENGINE = Kind(
    code="E-POLICY-ENGINE",
    summary="There is no OPA to evaluate the rules with",
    remedy="Run `stackyard tools install opa`.",
)

TIMEOUT_S = 60.0
# OPA ends by itself when its time is over; this is for one that does not.
_PATIENCE_S = 10.0
_GRACE_S = 1.0
_OUTPUT_LIMIT_BYTES = 16 * 2**20
_QUOTED_CHARACTERS = 400
# What reaches out of the evaluation: to other machines, and to the environment and settings of OPA.
_WITHHELD = frozenset(("http.send", "net.lookup_ip_addr", "opa.runtime"))


async def evaluate_policies(
    plan: Mapping[str, Any],
    folders: Sequence[Path],
    *,
    context: Mapping[str, Any],
    allowances: Allowances | None = None,
    redactor: Redactor = NOTHING_SECRET,
    timeout_s: float = TIMEOUT_S,
) -> Verdict:
    """Evaluate the rules of some folders on a plan; whatever goes wrong is a reason to refuse it.

    Args:
        plan: The engine's JSON of the plan, as `show -json` gives it.
        folders: The folders of the rules; nothing is judged where there are none.
        context: What rules see beside the plan: `target`, `stack` and `mode`.
        allowances: What the user has named.
        redactor: What is secret beside what the plan marks.
        timeout_s: How long the rules may take.
    """
    if not folders:
        return Verdict(refused=())
    rules = await asyncio.to_thread(read_rules, folders)
    findings: tuple[Finding, ...] = rules.problems
    if not findings and rules.packages:
        document = {**context, "plan": mask_plan(plan, redactor)}
        findings = await _evaluate(rules, orjson.dumps(document), timeout_s)
    return Verdict.sort(findings, allowances or Allowances())


async def evaluate_repository(
    document: Mapping[str, Any], folders: Sequence[Path], *, timeout_s: float = TIMEOUT_S
) -> tuple[Finding, ...]:
    """Evaluate the rules for repositories of some folders; whatever goes wrong is a finding too.

    Args:
        document: What rules see as `input`.
        folders: The folders of the rules.
        timeout_s: How long the rules may take.
    """
    if not folders:
        return ()
    rules = await asyncio.to_thread(read_rules, folders, Subject.REPOSITORY)
    if rules.problems or not rules.packages:
        return rules.problems
    return await _evaluate(rules, orjson.dumps(document), timeout_s)


async def _evaluate(rules: RuleSet, document: bytes, timeout_s: float) -> tuple[Finding, ...]:
    (found,) = await survey(tools=(OPA,))
    if found.health is not Health.OK or found.path is None:
        return (Finding(kind=ENGINE, detail=f"OPA is {found.health.value}: {found.reason}"),)
    with tempfile.TemporaryDirectory(prefix="stackyard-policy-") as name:
        opa = _Opa(found.path, Path(name), timeout_s)
        try:
            return await opa.evaluate(rules, document)
        except (process.ProgramMissingError, process.ProgramUnusableError) as err:
            return (Finding(kind=ENGINE, detail=err.detail),)
        except (StackyardError, OSError) as err:
            detail = err.detail if isinstance(err, StackyardError) else str(err)
            return (Finding(kind=EVALUATION, detail=_shorten(detail)),)


class _Opa:
    """OPA in a folder of its own."""

    def __init__(self, program: Path, folder: Path, timeout_s: float) -> None:
        self._program = program
        self._folder = folder
        self._timeout_s = timeout_s

    async def evaluate(self, rules: RuleSet, document: bytes) -> tuple[Finding, ...]:
        """Return every finding."""
        capabilities = _withhold(await self._run("capabilities", "--current"))
        if capabilities is None:
            return (Finding(kind=ENGINE, detail="OPA does not say what its rules can do."),)
        (self._folder / "capabilities.json").write_bytes(capabilities)
        package = f"stackyard_answer_{secrets.token_hex(8)}"
        copies = self._write_copies(rules, _query(package, rules.packages))
        completed = await self._run(
            "eval",
            "--format=json",
            "--stdin-input",
            "--strict-builtin-errors",
            f"--timeout={self._timeout_s:g}s",
            "--capabilities=capabilities.json",
            "--data=rules",
            f"data.{package}.answer",
            stdin=document,
        )
        if completed.returncode == 0:
            return read_answer(completed.stdout, rules, copies)
        return read_errors(completed.stdout, copies) or (_died(completed),)

    def _write_copies(self, rules: RuleSet, query: str) -> dict[str, Path]:
        folder = self._folder / "rules"
        folder.mkdir()
        (folder / "answer.rego").write_text(query, encoding="utf-8")
        copies = {f"{number:04}{one.copy_suffix}": one for number, one in enumerate(rules.files)}
        for name, one in copies.items():
            (folder / name).write_bytes(one.data)
        return {name: one.path for name, one in copies.items()}

    async def _run(self, *arguments: str, stdin: bytes | None = None) -> process.Completed:
        command = process.Command(
            argv=(str(self._program), *arguments),
            env={"HOME": str(self._folder)},
            cwd=self._folder,
            stdin=stdin,
            timeout_s=self._timeout_s + _PATIENCE_S,
            grace_s=_GRACE_S,
            output_limit_bytes=_OUTPUT_LIMIT_BYTES,
        )
        return await process.run(command, check=False)


def _died(completed: process.Completed) -> Finding:
    said = _shorten(completed.stderr.strip()) or "nothing"
    return Finding(kind=EVALUATION, detail=f"OPA ended with status {completed.returncode} and said: {said}")


def _withhold(completed: process.Completed) -> bytes | None:
    """Return what rules may do, from what OPA says of itself; nothing when it says something else."""
    try:
        document = parse_json(completed.stdout)
        builtins = [one for one in document["builtins"] if one["name"] not in _WITHHELD]
    except (ValueError, KeyError, TypeError):
        return None
    if completed.returncode != 0 or not builtins:
        return None
    # Schemas in annotations could name other machines too.
    return orjson.dumps({**document, "builtins": builtins, "allow_net": []})


def _query(package: str, packages: Sequence[str]) -> str:
    """Return the rule that asks for all others; a list tells no value from an empty one."""
    return "\n".join((f"package {package}", "", "answer := {", *_list_questions(packages), "}", ""))


def _list_questions(packages: Sequence[str]) -> Iterator[str]:
    for package in packages:
        path = "".join(f"[{json.dumps(part)}]" for part in package.split("."))
        sides = ", ".join(f'"{side}": [v | v := data{path}["{side}"]]' for side in ("deny", "warn"))
        yield f"\t{json.dumps(package)}: {{{sides}}},"


def _shorten(text: str) -> str:
    return text if len(text) <= _QUOTED_CHARACTERS else f"{text[:_QUOTED_CHARACTERS]}..."
