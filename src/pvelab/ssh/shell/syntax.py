"""What a script is made of, once it is parsed."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "AndOr",
    "Command",
    "Function",
    "Group",
    "If",
    "Literal",
    "Part",
    "Pipeline",
    "Redirection",
    "Script",
    "Simple",
    "Substitution",
    "Variable",
    "Word",
]


@dataclass(frozen=True, slots=True)
class Literal:
    """Text that is complete in itself."""

    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name` or `${name:-default}`; the default also replaces an empty value if `colon` is set."""

    name: str
    default: Word | None = None
    colon: bool = False
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Substitution:
    """`$(script)`."""

    script: Script
    quoted: bool = False


Part = Literal | Variable | Substitution


@dataclass(frozen=True, slots=True)
class Word:
    """Parts without a space between them."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Redirection:
    """`2> file`, `>> file`, `< file`, `2>&1`; the operator is `>`, `>>`, `<` or `>&`."""

    descriptor: int
    operator: str
    target: Word


@dataclass(frozen=True, slots=True)
class Simple:
    """Assignments, a program with its arguments, redirections; each may be missing."""

    assignments: tuple[tuple[str, Word], ...] = ()
    words: tuple[Word, ...] = ()
    redirections: tuple[Redirection, ...] = ()


@dataclass(frozen=True, slots=True)
class If:
    """`if ...; then ...; elif ...; else ...; fi`."""

    branches: tuple[tuple[Script, Script], ...]
    otherwise: Script | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """`{ ...; }` or `( ... )`."""

    script: Script


@dataclass(frozen=True, slots=True)
class Function:
    """`name() { ...; }`."""

    name: str
    body: Script


Command = Simple | If | Group | Function


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands with `|` between them."""

    commands: tuple[Command, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class AndOr:
    """Pipelines with `&&` or `||` before each but the first, whose operator is empty."""

    steps: tuple[tuple[str, Pipeline], ...]


@dataclass(frozen=True, slots=True)
class Script:
    """One thing after the other."""

    lines: tuple[AndOr, ...] = ()
