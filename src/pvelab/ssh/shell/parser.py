"""From the text of a script to its syntax tree."""

from __future__ import annotations

import re

from pvelab.ssh.shell.syntax import (
    AndOr,
    Command,
    Function,
    Group,
    If,
    Literal,
    Part,
    Pipeline,
    Redirection,
    Script,
    Simple,
    Substitution,
    Variable,
    Word,
)

__all__ = ["ShellSyntaxError", "parse"]

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_FUNCTION = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)[ \t]*\([ \t]*\)")
_REDIRECTION = re.compile(r"(\d?)(>>|>&|>|<(?!<))")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$]")
_BLANK = re.compile(r"(?:[ \t]|\\\n)*(?:(?<![^\s;&|<>()])#[^\n]*)?")
_SPACE = re.compile(r"(?:[ \t\n]|\\\n|#[^\n]*)*")
# What ends a word that is not quoted.
_METACHARACTERS = frozenset(" \t\n;&|<>()")
_SPECIAL = _METACHARACTERS | frozenset("'\"\\$`")
_CLOSING = frozenset(("then", "elif", "else", "fi", "}"))
_UNKNOWN = frozenset(("for", "while", "until", "case", "select", "function", "[["))
_DEEPEST = 50


class ShellSyntaxError(Exception):
    """The script cannot be read, or uses more of the shell's language than the lab has."""


def parse(text: str) -> Script:
    """Return the syntax tree of a script.

    Raises:
        ShellSyntaxError: It cannot be read.
    """
    parser = _Parser(text)
    script = parser.script()
    parser.skip(_SPACE)
    if not parser.at_end:
        raise parser.make_syntax_error()
    return script


class _Parser:
    """Reads a script from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._depth = 0

    @property
    def at_end(self) -> bool:
        return self._place >= len(self._text)

    def skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._place)
        if found:
            self._place = found.end()

    def make_syntax_error(self) -> ShellSyntaxError:
        token = re.match(r"\w+|.", self._text[self._place :] or "\0", re.DOTALL)
        shown = "end of file" if self.at_end or token is None else f"`{token[0]}'"
        return ShellSyntaxError(f"syntax error near unexpected token {shown}")

    def script(self) -> Script:
        """Read lines until a word or sign that closes something opened before."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ShellSyntaxError("syntax error: too deeply nested for the lab's shell")
        lines: list[AndOr] = []
        while True:
            self.skip(_SPACE)
            if self.at_end or self._peek() == ")" or self._keyword() in _CLOSING:
                break
            lines.append(self._and_or())
            self.skip(_BLANK)
            if not self._take(";") and not self._take("\n"):
                break
            if self._peek() == ";":
                raise self.make_syntax_error()
        self._depth -= 1
        return Script(tuple(lines))

    def _and_or(self) -> AndOr:
        steps = [("", self._pipeline())]
        while True:
            self.skip(_BLANK)
            operator = next((sign for sign in ("&&", "||") if self._text.startswith(sign, self._place)), None)
            if operator is None:
                if self._peek() == "&":
                    raise ShellSyntaxError("the lab's shell runs nothing in the background: `&'")
                return AndOr(tuple(steps))
            self._place += 2
            self.skip(_SPACE)
            steps.append((operator, self._pipeline()))

    def _pipeline(self) -> Pipeline:
        negated = self._take_word("!")
        commands = [self._command()]
        while True:
            self.skip(_BLANK)
            if self._peek() != "|" or self._text.startswith("||", self._place):
                return Pipeline(tuple(commands), negated)
            self._place += 1
            self.skip(_SPACE)
            commands.append(self._command())

    def _command(self) -> Command:
        self.skip(_BLANK)
        if self._take("("):
            return Group(self._parse_until(")"))
        if self._take_word("{"):
            return Group(self._parse_until("}"))
        if self._take_word("if"):
            return self._if()
        function = _FUNCTION.match(self._text, self._place)
        if function:
            self._place = function.end()
            self.skip(_SPACE)
            if not self._take("{"):
                raise self.make_syntax_error()
            return Function(function[1], self._parse_until("}"))
        if self._keyword() in _UNKNOWN:
            raise ShellSyntaxError(f"the lab's shell does not know `{self._keyword()}'")
        return self._simple()

    def _parse_until(self, closing: str) -> Script:
        script = self.script()
        self.skip(_SPACE)
        if not self._take(closing):
            raise self.make_syntax_error()
        return script

    def _if(self) -> If:
        branches: list[tuple[Script, Script]] = []
        while True:
            condition = self._until_word("then")
            body = self.script()
            branches.append((condition, body))
            if not self._take_word("elif"):
                break
        otherwise = self.script() if self._take_word("else") else None
        if not self._take_word("fi"):
            raise self.make_syntax_error()
        return If(tuple(branches), otherwise)

    def _until_word(self, word: str) -> Script:
        script = self.script()
        if not self._take_word(word):
            raise self.make_syntax_error()
        return script

    def _simple(self) -> Simple:
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirections: list[Redirection] = []
        while True:
            self.skip(_BLANK)
            redirection = _REDIRECTION.match(self._text, self._place)
            if redirection:
                redirections.append(self._redirection(redirection))
                continue
            if self.at_end or self._peek() in _METACHARACTERS:
                break
            assignment = None if words else _ASSIGNMENT.match(self._text, self._place)
            if assignment:
                self._place = assignment.end()
                assignments.append((assignment[1], self._word()))
                continue
            words.append(self._word())
        if not (assignments or words or redirections):
            raise self.make_syntax_error()
        return Simple(tuple(assignments), tuple(words), tuple(redirections))

    def _redirection(self, found: re.Match[str]) -> Redirection:
        self._place = found.end()
        self.skip(_BLANK)
        target = self._word()
        if not target.parts:
            raise self.make_syntax_error()
        default = 0 if found[2] == "<" else 1
        return Redirection(int(found[1]) if found[1] else default, found[2], target)

    def _word(self) -> Word:
        parts: list[Part] = []
        while not self.at_end and self._peek() not in _METACHARACTERS:
            parts += self._part()
        return Word(tuple(parts))

    def _part(self) -> list[Part]:
        sign = self._peek()
        match sign:
            case "'":
                return [self._single_quoted()]
            case '"':
                return self._double_quoted()
            case "\\":
                self._place += 2
                escaped = self._text[self._place - 1 : self._place]
                return [] if escaped == "\n" else [Literal(escaped, quoted=True)]
            case "$":
                return [self._expansion(quoted=False)]
            case "`":
                raise ShellSyntaxError("the lab's shell knows $(...) only, not backquotes")
        start = self._place
        while not self.at_end and self._peek() not in _SPECIAL:
            self._place += 1
        return [Literal(self._text[start : self._place])]

    def _single_quoted(self) -> Literal:
        end = self._text.find("'", self._place + 1)
        if end < 0:
            raise ShellSyntaxError("unexpected EOF while looking for matching `''")
        text = self._text[self._place + 1 : end]
        self._place = end + 1
        return Literal(text, quoted=True)

    def _double_quoted(self) -> list[Part]:
        self._place += 1
        # Even empty quotes make a word.
        parts: list[Part] = [Literal("", quoted=True)]
        while not self.at_end:
            sign = self._peek()
            self._place += 1
            match sign:
                case '"':
                    return parts
                case "\\":
                    escaped = self._text[self._place : self._place + 1]
                    self._place += 1
                    kept = escaped if escaped in '"\\$`' else f"\\{escaped}"
                    parts.append(Literal("" if escaped == "\n" else kept, quoted=True))
                case "$":
                    self._place -= 1
                    parts.append(self._expansion(quoted=True))
                case _:
                    parts.append(Literal(sign, quoted=True))
        raise ShellSyntaxError("unexpected EOF while looking for matching `\"'")

    def _expansion(self, *, quoted: bool) -> Part:
        self._place += 1
        if self._take("("):
            if self._peek() == "(":
                raise ShellSyntaxError("the lab's shell does not compute: `$(('")
            return Substitution(self._parse_until(")"), quoted)
        if self._take("{"):
            return self._parse_braces(quoted=quoted)
        found = _PARAMETER.match(self._text, self._place)
        if found is None:
            return Literal("$", quoted)
        self._place = found.end()
        return Variable(found[0], quoted=quoted)

    def _parse_braces(self, *, quoted: bool) -> Variable:
        found = _PARAMETER.match(self._text, self._place)
        if found is None:
            raise self.make_syntax_error()
        self._place = found.end()
        colon = self._take(":")
        default: Word | None = None
        if self._take("-"):
            parts: list[Part] = [Literal("")]
            while not self.at_end and self._peek() != "}":
                if self._peek() in _METACHARACTERS:
                    parts.append(Literal(self._peek(), quoted=True))
                    self._place += 1
                else:
                    parts += self._default_part()
            default = Word(tuple(parts))
        elif colon:
            raise ShellSyntaxError(f"${{{found[0]}:...}}: the lab's shell knows defaults (:-) only")
        if not self._take("}"):
            raise ShellSyntaxError(
                "bad substitution: the lab's shell knows ${name} and ${name:-default} only"
            )
        return Variable(found[0], default, colon, quoted)

    def _default_part(self) -> list[Part]:
        if self._peek() in _SPECIAL:
            return self._part()
        self._place += 1
        return [Literal(self._text[self._place - 1])]

    def _peek(self) -> str:
        return self._text[self._place : self._place + 1]

    def _take(self, sign: str) -> bool:
        taken = self._text.startswith(sign, self._place)
        self._place += len(sign) if taken else 0
        return taken

    def _keyword(self) -> str:
        """Return the plain word that stands here, without taking it."""
        found = re.compile(r"[A-Za-z]+|\}|\{|!|\[\[").match(self._text, self._place)
        if found is None:
            return ""
        after = self._text[found.end() : found.end() + 1]
        return found[0] if not after or after in _METACHARACTERS else ""

    def _take_word(self, word: str) -> bool:
        self.skip(_SPACE)
        if self._keyword() != word:
            return False
        self._place += len(word)
        return True
