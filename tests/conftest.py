"""Every test begins with the same environment and a home of its own.

Fixtures:

- `clean_environment` (used by every test by itself): no setting of the developer's own session leaks into the
  test, and what the test writes below HOME or an XDG folder is its own. PATH, the certificate and proxy
  settings, and those of Go and pip stay. Variables that begin with STACKYARD_TEST_ stay too: they choose the
  real programs to test with.
- `few_descriptors` (used by every test by itself): a test that leaves more than a few descriptors, or a
  connection of an event loop that has ended, open fails.
- `home`: the HOME of this test, an empty folder beside `tmp_path`.

A test may be a coroutine function: `tests.support.async_tests`. A test that hangs although its time limit has
passed ends its process: `tests.support.watchdog`.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest
from tests.support import judges, watchdog
from tests.support.async_tests import pytest_pyfunc_call
from tests.support.descriptors import few_left_open
from tests.support.loop_end import end_connections_with_loops, take_left_open

from stackyard.engine.tools import managed

# A hook that pytest finds here.
__all__ = ["pytest_pyfunc_call"]

# What changes how stackyard, or a program that it runs, behaves.
LEAKING_NAMES = frozenset(
    "NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE COLUMNS LINES PAGER EDITOR VISUAL".split()
)
LEAKING_PREFIXES = (
    "STACKYARD_",
    "TF_",
    "TOFU_",
    "PROXMOX_",
    "PVE_",
    "ANSIBLE_",
    "SOPS_",
    "GIT_",
    "XDG_",
    "S3_",
    "PG",
    "DEPLOYMENT_",
)
KEPT_PREFIX = "STACKYARD_TEST_"

# What Go and pip find below the HOME of the developer: to fill it again for each test would take minutes.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
CONFIG = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
KEPT_FOLDERS = {
    "GOENV": CONFIG / "go" / "env",
    "GOPATH": Path.home() / "go",
    "GOCACHE": CACHE / "go-build",
    "PIP_CACHE_DIR": CACHE / "pip",
    "PIP_CONFIG_FILE": CONFIG / "pip" / "pip.conf",
}
XDG_FOLDERS = {
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_RUNTIME_DIR": ".run",
}

# As the program has it before it loads gRPC. Some modules of tests load that before anything is served, and
# its handlers for forks then bring down programs that are just being started.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# The same examples in every run, whatever the speed of the machine, and nothing kept in the checkout.
hypothesis.settings.register_profile("stackyard", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("stackyard")


def pytest_configure() -> None:
    """Start from ordinary signals, and note the developer's programs before HOME becomes a test's."""
    # Under nohup or as a background job some are ignored, and the programs of the tests would inherit that.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)
    chosen = os.environ.get("STACKYARD_TOFU")
    if not chosen and not shutil.which("tofu"):
        chosen = next(map(str, managed.copies("tofu")), None)
    if chosen:
        os.environ.setdefault("STACKYARD_TEST_TOFU", chosen)
    judges.note_programs()
    end_connections_with_loops()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what a program of others judges, before marks choose the tests."""
    judges.mark_tests(items)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Count what the programs of others have judged, where they were asked for."""
    if judges.MARK in config.getoption("markexpr") and not config.getoption("collectonly"):
        judges.show_counts(terminalreporter)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Watch every test from the set-up of its fixtures to their end."""
    with watchdog.watch(item):
        return (yield)


@pytest.fixture(autouse=True)
def few_descriptors(request: pytest.FixtureRequest) -> Iterator[None]:
    failed = request.session.testsfailed
    with few_left_open(request.node.nodeid, is_excused=lambda: request.session.testsfailed != failed):
        yield
    left = take_left_open()
    assert not left or request.session.testsfailed != failed, f"an event loop ended with {', '.join(left)}"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path.with_name(f"{tmp_path.name}-home")
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def clean_environment(few_descriptors: None, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The count of descriptors begins before all else and ends after it.
    del few_descriptors
    for name in os.environ:
        leaks = name in LEAKING_NAMES or name.startswith(LEAKING_PREFIXES)
        if leaks and not name.startswith(KEPT_PREFIX):
            monkeypatch.delenv(name)
    for name, place in KEPT_FOLDERS.items():
        if name not in os.environ and place.exists():
            monkeypatch.setenv(name, str(place))
    for name, below in XDG_FOLDERS.items():
        monkeypatch.setenv(name, str(home / below))
    monkeypatch.setenv("HOME", str(home))
