"""Strings, comments and skipped expressions of HCL: the pieces that the reader of variables files is made of.

Every pattern is possessive: no text makes it try the same characters twice.
"""

from __future__ import annotations

import re
import textwrap

__all__ = [
    "BLANKS",
    "GAP",
    "IDENTIFIER",
    "NOT_CONSTANT",
    "NUMBER",
    "SIMPLE_TEXT",
    "NotConstant",
    "Scanner",
    "TfvarsTextError",
    "read_number",
]

# Groups are not possessive: Python before 3.11.5 matches too little with some that are.
IDENTIFIER = r"[^\W\d][\w-]*+"
NUMBER = r"-?\d++(?:\.\d++)?(?:[eE][-+]?\d++)?"
# Without an escape or a template, so that it means what it says.
SIMPLE_TEXT = r'[^"\\\n$%]*+(?:[$%](?!\{)[^"\\\n$%]*+)*'
_COMMENT = r"#[^\n]*+|//[^\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*\*/"
# What may be between two tokens: within a line, and over several.
GAP = re.compile(rf"(?:[ \t\r]++|{_COMMENT})*")
BLANKS = re.compile(rf"(?:\s++|{_COMMENT})*")

_STRING = re.compile(r'"([^"\\\n$%]*+(?:(?:\\.|\$\$\{|%%\{|[$%](?!\{))[^"\\\n$%]*+)*)"')
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))|([$%])\4\{", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}
_HEREDOC = re.compile(rf"<<(-?)({IDENTIFIER})[ \t]*+\r?\n")
_TEMPLATE = re.compile(r"\$\$\{|%%\{|([$%]\{)")
# The next thing of a string that has templates, and of an expression.
_IN_STRING = re.compile(r'\\.|\$\$\{|%%\{|[$%]\{|"|\n', re.DOTALL)
_IN_EXPRESSION = re.compile(rf'{_COMMENT}|<<(?=-?{IDENTIFIER}[ \t]*\r?\n)|["()\[\]{{}},\n]')
_CLOSING = {"(": ")", "[": "]", "{": "}", "${": "}", "%{": "}"}
_LONGEST_NUMBER = 300


class TfvarsTextError(ValueError):
    """A text that is no HCL: what is wrong, without a word of the text, and where."""

    def __init__(self, problem: str, at: int) -> None:
        super().__init__(problem)
        self.problem, self.at = problem, at


class NotConstant:
    """A value that only the engine can compute."""

    def __repr__(self) -> str:
        return "NOT_CONSTANT"


NOT_CONSTANT = NotConstant()


def read_number(text: str) -> int | float | NotConstant:
    """Return the number that a text is."""
    if len(text) > _LONGEST_NUMBER:
        return NOT_CONSTANT
    return int(text) if text.lstrip("-").isdecimal() else float(text)


class Scanner:
    """A text and a place in it.

    Attributes:
        text: The text.
        at: The place.
        strings: Every string that was passed, those inside of expressions too.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.strings: list[str] = []

    def read_string(self) -> str | NotConstant:
        """Read the string in quotes that begins here."""
        found = _STRING.match(self.text, self.at)
        if found is None:
            self._skip_template_string()
            return NOT_CONSTANT
        value = found[1]
        if "\\" in value or "{" in value:
            value = _ESCAPE.sub(lambda escape: self._unescape(escape, found.start(1)), value)
        self.at = found.end()
        self.strings.append(value)
        return value

    def read_heredoc(self) -> str | NotConstant | None:
        """Read the text of several lines that begins here, if one does."""
        start = _HEREDOC.match(self.text, self.at)
        if start is None:
            return None
        ending = re.compile(rf"^[ \t]*+{re.escape(start[2])}[ \t]*+(?=\r?$)", re.MULTILINE)
        end = ending.search(self.text, start.end())
        if end is None:
            raise TfvarsTextError("A text of several lines (<<) has no end", self.at)
        value = self.text[start.end() : end.start()]
        self.at = end.end()
        self.strings.append(value)
        if any(found[1] for found in _TEMPLATE.finditer(value)):
            return NOT_CONSTANT
        value = value.replace("$${", "${").replace("%%{", "%{")
        if start[1]:
            value = textwrap.dedent(value)
            self.strings.append(value)
        return value

    def skip_expression(self, *, newline_ends: bool) -> None:
        """Skip to the end of an expression: a comma, a bracket that closes, and for most a new line."""
        open_at: list[tuple[str, int]] = []
        while True:
            found = _IN_EXPRESSION.search(self.text, self.at)
            if found is None:
                self.at = len(self.text)
                break
            mark = found[0]
            if not open_at and (mark in ",)]}" or (mark == "\n" and newline_ends)):
                self.at = found.start()
                return
            self._skip_token(mark, found, open_at)
        if open_at:
            raise TfvarsTextError("A bracket is not closed", open_at[-1][1])

    def _skip_token(self, mark: str, found: re.Match[str], open_at: list[tuple[str, int]]) -> None:
        if mark == '"':
            self.at = found.start()
            self.read_string()
            return
        if mark == "<<":
            self.at = found.start()
            self.read_heredoc()
            return
        self.at = found.end()
        if mark in _CLOSING:
            open_at.append((_CLOSING[mark], found.start()))
        elif mark in ")]}" and open_at.pop()[0] != mark:
            raise TfvarsTextError("A bracket closes another one than was opened", found.start())

    def _skip_template_string(self) -> None:
        """Skip a string with templates, in which there may be strings again."""
        start = self.at
        # Around the place: `"` for a string, else the bracket that closes a part of a template.
        around = ['"']
        self.at += 1
        while around:
            in_string = around[-1] == '"'
            found = (_IN_STRING if in_string else _IN_EXPRESSION).search(self.text, self.at)
            mark = found[0] if found is not None else "\n"
            if found is None or (in_string and mark == "\n"):
                raise TfvarsTextError("A string has no end", start)
            self.at = found.end()
            if mark == around[-1]:
                around.pop()
            elif mark == '"' or (in_string and mark in _CLOSING):
                around.append(_CLOSING.get(mark, mark))
            elif not in_string and mark in _CLOSING:
                around.append(_CLOSING[mark])
            elif not in_string and mark in ")]}":
                raise TfvarsTextError("A bracket closes another one than was opened", found.start())
        self.strings.append(self.text[start + 1 : self.at - 1])

    def _unescape(self, escape: re.Match[str], start: int) -> str:
        if escape[4]:
            return f"{escape[4]}{{"
        code = escape[1] or escape[2]
        if code is None and escape[3] in _ESCAPED:
            return _ESCAPED[escape[3]]
        number = int(code, 16) if code else -1
        if not 0 <= number < 0x110000 or 0xD800 <= number < 0xE000:
            raise TfvarsTextError(
                "A string has an escape (\\) that HCL does not know", start + escape.start()
            )
        return chr(number)
