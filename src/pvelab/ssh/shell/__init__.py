"""A small shell: enough of bash for the scripts that clients send, run on the lab and never on the machine.

It supports quotes, variables (`$x`, `${x:-default}`), `$(...)`, pipes, `;`, `&&`, `||`, `!`, groups, `if`,
functions, and redirections to files of the lab. Everything else is refused as a syntax error.
"""

from __future__ import annotations

from pvelab.ssh.shell.interpreter import Program, Shell, Streams
from pvelab.ssh.shell.parser import ShellSyntaxError, parse

__all__ = ["Program", "Shell", "ShellSyntaxError", "Streams", "parse"]
