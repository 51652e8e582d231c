"""A pytest plugin: a test that is a coroutine function runs in an event loop of its own."""

from __future__ import annotations

import asyncio
import inspect

import pytest

__all__ = ["pytest_pyfunc_call"]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run such a test with the fixtures that it names; leave every other test to pytest."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    # Fixtures that are used without being named (autouse) are among `funcargs` too.
    named = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in named}))
    return True
