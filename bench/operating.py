"""A run of the operator in a process of its own, whose hands take a fixed time for each guest.

python -m bench.operating VERB SITE MANIFEST_FILE CONFIGURATION_SECONDS
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

from stackyard.operator.outcome import Phase, Verb
from stackyard.operator.request import VerbRequest
from stackyard.operator.verbs import run_verb

__all__ = ["main"]


class _Hands:
    """Configures every guest in the same time, without touching it."""

    def __init__(self, configuration_s: float) -> None:
        self._configuration_s = configuration_s

    async def configure(self, *_: Any) -> tuple[Phase, ...]:
        await asyncio.sleep(self._configuration_s)
        return (Phase(name="apply_spec", took_s=self._configuration_s),)

    async def inspect(self, *_: Any) -> tuple[Phase, ...]:
        return (Phase(name="verify_packages"),)

    async def delegate(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("A flat manifest has nothing inside of its nodes.")


def main(arguments: list[str]) -> int:
    """Run a verb and print its outcome."""
    verb, site, manifest, configuration_s = arguments

    @contextlib.asynccontextmanager
    async def guest_actions_for(host: str) -> AsyncIterator[Any]:
        del host
        yield _Hands(float(configuration_s))

    request = VerbRequest(file=manifest, site=site, host="lab")
    outcome = asyncio.run(run_verb(Verb(verb), request, guest_actions_for=guest_actions_for))
    sys.stdout.write(json.dumps(outcome.as_json()) + "\n")
    return 0 if outcome.success else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
