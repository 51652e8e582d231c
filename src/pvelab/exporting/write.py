"""Printing the document of a seed as YAML that a human can read and change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["format_seed"]

_WIDTH = 110
_HEADER = """\
# A copy of {source}, made by `stackyard lab export`. Start a lab with it:
#
#   stackyard lab up --seed FILE
#
# Not in it: the content of disks and files, passwords, secrets of API tokens and storages, second factors,
# certificates, environments of containers. Users have no password and tokens new secrets; root@pam logs in
# with what `stackyard lab status` shows. Read it before you give it away: names, addresses, notes and public
# keys are those of your cluster.
"""


class _Dumper(yaml.CSafeDumper):
    """Writes texts of several lines as blocks, and everything in full."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write what occurs twice twice."""
        return True


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    is_block = "\n" in value and not any(line != line.rstrip() for line in value.split("\n"))
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if is_block else None)


_Dumper.add_representer(str, _text)


def format_seed(document: Mapping[str, Any], *, source: str, left_out: Mapping[str, str]) -> str:
    """Return the text of a file.

    Args:
        document: The document of a seed.
        source: What it is a copy of, for the comment at its top.
        left_out: What could not be read or made again, with the reason.
    """
    lines = [_HEADER.format(source=source)]
    if left_out:
        lines.append("#\n# Left out, because it could not be read here or made again in a lab:\n")
        lines += [f"#   {what}: {' '.join(reason.split())}\n" for what, reason in left_out.items()]
    for key, value in document.items():
        # Entries of these are one line each; the rest is easier to read in full.
        flow = None if key in ("capacities", "volumes", "calls", "nodes") else False
        printed = yaml.dump(
            {key: value},
            Dumper=_Dumper,
            sort_keys=False,
            allow_unicode=True,
            width=_WIDTH,
            default_flow_style=flow,
        )
        lines.append(f"\n{printed}")
    return "".join(lines)
