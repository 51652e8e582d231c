"""What is answered to comments, in Markdown made of words of ours alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["HELP", "say_misunderstood"]

HELP = """\
Commands, each on a line of its own, by somebody who may write to this repository:

| command | what it does |
|---|---|
| `stackyard plan` | plans again |
| `stackyard apply` | approves the plan that is shown, and asks for it to be applied |
| `stackyard allow destroy NAME` | permits what the guard refuses; the plan shows the exact words |
| `stackyard allow code COMMIT` | lets code of this commit be planned that could do more than plan |
| `stackyard unlock` | gives the targets back that this pull request holds |
| `stackyard help` | shows this |
"""


def say_misunderstood(reasons: Sequence[str]) -> str:
    """Return the answer to what looks like commands and is none; the reasons are ours."""
    rows = "\n".join(f"- {reason}" for reason in reasons)
    told = "A comment has something that looks like a command and is none. Nothing was done for it."
    return f"{told}\n\n{rows}\n\n{HELP}"
