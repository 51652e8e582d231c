"""What a person sees of a proposed change of a state, and of one that was made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.path.stacks.state_change.operation import StateVerb

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.path.stacks.state_change.apply import AppliedChange
    from stackyard.path.stacks.state_change.document import PlanAfter
    from stackyard.path.stacks.state_change.records import ChangeRecord

__all__ = ["show_applied", "show_change"]

_MARKS = {"create": "+", "update": "~", "delete": "-", "replace": "±", "forget": "-", "read": "<"}


def show_change(writer: TextWriter, record: ChangeRecord, out: str | None) -> None:
    """Write a change with the plan after it, and what to do next."""
    change = record.change
    writer.line(f"Change {change.id} of stack:{change.stack}: {change.operation}")
    version = (
        f"serial {change.state.serial} of {change.state.lineage}" if change.state.digest else "no state yet"
    )
    writer.line(f"  made from  {version}")
    writer.line(f"  proposed   {change.proposed_by}, {change.proposed_at}, commit {change.commit or 'none'}")
    if record.approval is not None:
        alone = ", alone" if record.approval.is_alone else ""
        writer.line(f"  approved   {record.approval.by}, {record.approval.at}{alone}")
    if record.applied_at:
        writer.line(f"  applied    {record.applied_by}, {record.applied_at}")
    for before, after in change.moved:
        writer.line(f"  moved      {before} -> {after}")
    for mark, addresses in (("+ ", change.added), ("- ", change.removed)):
        for address in addresses:
            writer.line(f"  {mark}in state {address}" if mark == "+ " else f"  {mark}state    {address}")
    if change.removed and change.operation.verb is StateVerb.REMOVE:
        writer.line(
            "The removed resources themselves stay, and nothing manages them any more. If the code still has "
            "them, the next apply creates them a second time.",
            style="yellow",
        )
    writer.line("The plan after it:")
    _show_plan(writer, change.plan)
    if out:
        writer.line(f"Saved to {out}.")
    if record.status == "proposed":
        writer.line(
            f"The state is unchanged. A second person runs: stackyard stack state approve {change.id}"
        )


def show_applied(writer: TextWriter, done: AppliedChange) -> None:
    """Write that a change was made, the way back, and whether the plan is the one that was reviewed."""
    record = done.record
    change = record.change
    if done.was_done:
        writer.line(f"The change {change.id} was made before; the state has serial {done.serial}.")
    else:
        writer.line(f"Done: {change.operation}. The state has serial {done.serial} now.", style="green")
    if record.kept:
        writer.line(f"To go back: stackyard stack state rollback stack:{change.stack} {record.kept}")
    if done.is_as_reviewed:
        writer.line("The plan is the one that was reviewed:")
    else:
        writer.line("The plan is NOT the one that was reviewed:", style="red")
    _show_plan(writer, done.plan)


def _show_plan(writer: TextWriter, plan: PlanAfter) -> None:
    for address, action in plan.changes:
        writer.line(f"  {_MARKS.get(action, ' ')} {action:<8} {address}")
    for name in plan.outputs:
        writer.line(f"  ~ output   {name}")
    for reason in plan.refused:
        writer.line(f"  the guard would refuse: {reason}", style="red")
    if plan.is_nothing:
        writer.line("  No changes.", style="green")
