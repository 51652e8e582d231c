"""What the engine asks of a provider, on plain values: validate, read, plan, apply, import, upgrade.

Each returns its result together with the findings, and never raises for what a user or Proxmox can cause.
"""

from __future__ import annotations

import contextlib
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import InternalError, StackyardError
from stackyard.clients import proxmox
from stackyard.provider.kinds import Work
from stackyard.provider.legacy_values import align
from stackyard.provider.plan import IMPORTED, plan_change
from stackyard.provider.problems import NEWER_NAME, AttributeValueError, Path, Problem
from stackyard.provider.schema import UNSET, Block, Nesting
from stackyard.provider.validate import check_block
from stackyard.provider.values import UNKNOWN, Object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.provider.registry import KnownDataSource, KnownResource
    from stackyard.provider.session import Session

__all__ = ["Change", "Operations", "Result"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a plan is asked for.

    Attributes:
        config: What is written in the configuration.
        prior: What was there; None when it is to be created.
        proposed: The two merged, as the engine does it.
        private: What the last read remembered.
    """

    config: Object
    prior: Object | None
    proposed: Object
    private: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Result:
    """What an operation came to.

    Attributes:
        state: The object; None when there is none.
        replace: For a plan, the attributes whose change means another object.
        private: What is remembered beside the state.
        problems: What the user gets.
    """

    state: Object | None = None
    replace: list[Path] = field(default_factory=list)
    private: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


class Operations:
    """The operations, for one session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def validate(
        self, known: KnownResource | KnownDataSource, type_name: str, config: Object
    ) -> list[Problem]:
        """Return everything that is wrong with a configuration."""
        found = list(check_block(known.schema.block, config))
        check = getattr(known.kind, "validate", None)
        if check is not None and not found:
            found += check(config)
        newer = known.kind.names[0]
        if known.schema.block.deprecated and type_name != newer:
            detail = f"{type_name} is called {newer} now; a `moved` block takes its state along."
            found.append(Problem(summary=NEWER_NAME, detail=detail, is_error=False))
        return found

    async def read(
        self, known: KnownResource, type_name: str, state: Object, private: dict[str, Any]
    ) -> Result:
        """Return an object as it is now."""
        work = Work(self._session, type_name, private=private)
        # A read that fails says nothing about the object.
        result = Result(state=state, private=work.private, problems=work.warnings)
        with self._report_errors(result):
            found = await known.kind.read(work, state)
            result.state = None if found is None else _finish(known, state, found)
        return result

    def plan(self, known: KnownResource, change: Change) -> Result:
        """Return what a change leads to."""
        prior = change.prior
        planned = plan_change(known.schema, change.config, prior, change.proposed)
        planned.private = change.private
        result = Result(state=planned.values, problems=planned.warnings)
        with self._report_errors(result):
            if known.kind.plan is not None:
                known.kind.plan(planned)
        result.replace = planned.replace
        if (
            prior is not None
            and known.kind.update is None
            and planned.values != prior
            and not planned.replace
        ):
            result.replace = [(name,) for name in planned.values if planned.changed(name)]
        return result

    async def apply(
        self,
        known: KnownResource,
        type_name: str,
        prior: Object | None,
        planned: Object | None,
        config: Object | None = None,
    ) -> Result:
        """Make, change or remove an object; what is there after a failure is in the result all the same."""
        work = Work(self._session, type_name, config=config or {}, kept=prior)
        result = Result(problems=work.warnings)
        with self._report_errors(result):
            work.kept = await self._perform(known, work, prior, planned)
        self._report_failure(work.kept or planned or {}, result)
        if work.kept is not None:
            result.state = _without_unknown(known.schema.block.complete(work.kept))
        return result

    def _report_failure(self, values: Object, result: Result) -> None:
        """Tell why a guest failed at once: the engine tells its errors when it has ended."""
        # A guest of the framework has its number as its id; of anything else the id is a text.
        vm_id = values.get("vm_id", values.get("id"))
        problem = next((one for one in result.problems if one.is_error), None)
        if problem is not None and isinstance(vm_id, int):
            self._session.waits.report_failure(vm_id, problem.detail.partition("\n")[0])

    async def _perform(
        self, known: KnownResource, work: Work, prior: Object | None, planned: Object | None
    ) -> Object | None:
        kind = known.kind
        if planned is None:
            if prior is not None:
                # Gone already is as good as removed.
                with contextlib.suppress(proxmox.MissingError):
                    await kind.delete(work, prior)
            return None
        if prior is None:
            made = await kind.create(work, planned)
        elif kind.update is not None:
            made = await kind.update(work, prior, planned)
        else:
            made = planned
        return _finish(known, planned, made)

    def identify(self, known: KnownResource, type_name: str, given: str) -> Result:
        """Return the attributes that an import starts from, and the mark that it was one."""
        result = Result(private={IMPORTED: True})
        expected = self._session.expected.get((type_name, given), {})
        with self._report_errors(result):
            result.state = known.schema.block.complete(
                {
                    **_defaults(known.schema.block),
                    **_as_state(known.schema.block, expected),
                    **known.kind.identify(given),
                }
            )
        return result

    async def read_data(self, known: KnownDataSource, type_name: str, config: Object) -> Result:
        """Return the values of a data source."""
        work = Work(self._session, type_name)
        result = Result(problems=work.warnings)
        with self._report_errors(result):
            result.state = known.schema.block.complete(await known.kind.read(work, config))
        return result

    @contextlib.contextmanager
    def _report_errors(self, result: Result) -> Iterator[None]:
        """Turn an error into a finding, without its secrets; the block is left as if it had ended."""
        try:
            yield
        except StackyardError as err:
            detail = err.detail if not err.remedy else f"{err.detail}\n\n{err.remedy}"
            path = err.path if isinstance(err, AttributeValueError) else ()
            hide = self._session.redactor
            summary = f"{err.summary} ({err.code})"
            result.problems.append(Problem(summary=summary, detail=hide(detail), path=path))
        except Exception as err:  # The edge to the engine: it must get the state of what was made so far.
            where = "".join(traceback.format_tb(err.__traceback__)[-1:]).strip()
            detail = f"{type(err).__name__}: {err}\n{where}\n\n{InternalError.default_remedy}"
            summary = f"{InternalError.summary} ({InternalError.code})"
            result.problems.append(Problem(summary=summary, detail=self._session.redactor(detail)))


def _finish(known: KnownResource, before: Object, found: Object) -> Object:
    whole = known.schema.block.complete(found)
    return align(known.schema.block, before, whole) if known.schema.sdk else whole


def _defaults(block: Block) -> Object:
    return {
        name: attribute.rule.default
        for name, attribute in block.attributes.items()
        if attribute.rule.default is not UNSET
    }


def _as_state(block: Block, expected: Object) -> Object:
    """Return what a configuration says in the form of a state: single blocks as lists, objects whole."""
    values = dict(expected)
    for name, nested in block.blocks.items():
        if nested.nesting in (Nesting.LIST, Nesting.SET) and isinstance(values.get(name), dict):
            values[name] = [values[name]]
    for name, attribute in block.attributes.items():
        if attribute.nested is not None and values.get(name) is not None:
            values[name] = attribute.nested.complete(values[name])
    return values


def _without_unknown(state: Object) -> Object:
    """Return a state that can be stored: what no one found out is null, and only that.

    What is known of an incomplete guest's disks tells the next plan that they are the ones it wants.
    """
    return {name: _drop_unknown(value) for name, value in state.items()}


def _drop_unknown(value: Any) -> Any:
    if value is UNKNOWN:
        return None
    if isinstance(value, dict):
        return _without_unknown(value)
    return [_drop_unknown(one) for one in value] if isinstance(value, list) else value
