"""A small shell: enough of bash for the scripts that clients send, run on the lab and never on the machine.

It has words with quotes, variables (`$x`, `${x:-default}`), `$(...)`, pipes, `;`, `&&`, `||`, `!`, groups,
`if`, functions, and redirections to files of the lab. What it does not have it refuses as a syntax error.
"""

from __future__ import annotations

from stackyard.lab.ssh.shell.interpreter import Program, Shell, Streams
from stackyard.lab.ssh.shell.parsing import ShellSyntaxError, parse

__all__ = ["Program", "Shell", "ShellSyntaxError", "Streams", "parse"]
