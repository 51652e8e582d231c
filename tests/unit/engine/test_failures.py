from __future__ import annotations

import pytest

from stackyard.base.diagnostics import Severity, describe
from stackyard.base.errors import BusyError, ExitStatus, Location, UnreachableError
from stackyard.engine import failures
from stackyard.engine.failures import Finding, LockHolder, TofuError, cause, failure, read_holder, read_text

LOCKED = (
    "Error message: resource temporarily unavailable\nLock Info:\n  ID:        5bbdb1d3\n"
    "  Path:      terraform.tfstate\n  Operation: OperationTypeApply\n  Who:       ann@desk\n"
    "  Version:   1.12.6\n  Created:   2026-01-02 03:04:05.9 +0000 UTC\n  Info:      \n\n\nOpenTofu acquires"
)
ADVICE = (
    "\n\n\n{engine} acquires a state lock to protect the state from being written\n"
    "by multiple users at the same time. Please resolve the issue above and try\n"
    'again. For most commands, you can disable locking with the "-lock=false"\n'
    "flag, but this is not recommended."
)

LOCKING = "Error acquiring the state lock"
INCONSISTENT = "Inconsistent dependency lock file"
MISFIT = "locked provider x 1 does not match configured version constraint ~> 2; must use init -upgrade"
GAVE_UP = "GET http://h giving up after 1 attempt(s)"
IN_CLEAR = "encountered unencrypted payload without unencrypted method configured"
SEALED = (
    "decryption failed for all provided methods\nattempted decryption failed for state: no decryption key"
)
UNREADABLE = "This state file is encrypted and can not be read without an encryption\nconfiguration"
REFUSED = "dial tcp 192.0.2.1:9: connect: connection refused"


def error(summary: str, detail: str = "", where: Location | None = None) -> Finding:
    return Finding(severity=Severity.ERROR, summary=summary, detail=detail, where=where)


@pytest.mark.parametrize(
    ("summary", "detail", "expected"),
    [
        (LOCKING, LOCKED, failures.StateLockedError),
        (
            LOCKING,
            "Error message: HTTP remote state already locked, failed to read",
            failures.StateLockedError,
        ),
        (LOCKING, f"Error message: Failed to lock: LOCK {GAVE_UP}", failures.BackendUnreachableError),
        (LOCKING, "Error message: HTTP remote state endpoint requires auth", failures.BackendLoginError),
        ("Error releasing the state lock", "Error message: …", failures.StateNotUnlockedError),
        ("Saved plan is stale", "", failures.PlanStaleError),
        ("Saved plan does not match the given state", "", failures.PlanStaleError),
        (INCONSISTENT, "… A saved plan can be applied only to …", failures.PlanStaleError),
        (INCONSISTENT, "no version is selected", failures.ProviderLockError),
        ("Provider dependency changes detected", "", failures.ProviderLockError),
        ("failed to read dependency lock file: 2 problems:\n\n- …", "", failures.ProviderLockError),
        ("Failed to query available provider packages", MISFIT, failures.ProviderLockError),
        ("Failed to resolve provider packages", MISFIT, failures.ProviderLockError),
        ("Failed to resolve provider packages", REFUSED, failures.RegistryUnreachableError),
        ("Failed to install provider", "not in the dependency lock file", failures.ProviderLockError),
        ('Backend initialization required, please run "tofu init"', "", failures.InitNeededError),
        ("missing or corrupted provider plugins:\n  - x", "", failures.InitNeededError),
        ("Failed to persist state to backend", "", failures.StateNotSavedError),
        (f"error loading state: Failed to get state: {GAVE_UP}", "", failures.BackendUnreachableError),
        ("Error refreshing the state", f"Failed to load state: {REFUSED}", failures.BackendUnreachableError),
        ("error loading state: HTTP remote state endpoint requires auth", "", failures.BackendLoginError),
        (LOCKING, f"Error message: failed to write backup file: {IN_CLEAR}", failures.StateInClearError),
        ("Error refreshing the state", f"Failed to load state: {IN_CLEAR}", failures.StateInClearError),
        (IN_CLEAR.replace(" method", "\nmethod"), "", failures.StateInClearError),
        (LOCKING, f"Error message: failed to write backup file: {SEALED}", failures.StatePassphraseError),
        (SEALED, "", failures.StatePassphraseError),
        ("Unsupported state file format", UNREADABLE, failures.StatePassphraseError),
        ("Error creating VM", SEALED, TofuError),
        ("Failed to load plugin schemas", "dial unix: connection refused", TofuError),
        ("Error creating VM", REFUSED, TofuError),
        ("Something of the future", "", TofuError),
    ],
)
def test_a_report_is_told_by_its_cause(summary: str, detail: str, expected: type[TofuError]) -> None:
    assert cause(error(summary, detail)) is expected


def test_the_most_important_cause_names_the_error() -> None:
    found = (
        error("local-exec provisioner error"),
        error("Error releasing the state lock"),
        error("Failed to persist state to backend"),
        Finding(severity=Severity.WARNING, summary="Saved plan is stale", detail=""),
    )
    raised = failure("`tofu apply` in x", found, "")
    assert type(raised) is failures.StateNotSavedError
    assert raised.detail == "`tofu apply` in x failed: Failed to persist state to backend (and 2 more)."
    assert len(raised.diagnostics) == 4


def test_a_warning_alone_names_no_cause() -> None:
    warning = Finding(severity=Severity.WARNING, summary="Saved plan is stale", detail="")
    raised = failure("`tofu apply` in x", (warning,), "It ended with signal 9 and said: nothing")
    assert type(raised) is TofuError
    assert raised.detail.endswith("signal 9 and said: nothing")


def test_an_error_carries_every_finding_with_its_code_and_place() -> None:
    where = Location("/srv/site/main.tf", 3, 7)
    raised = failure(
        "`tofu plan` in x", (error("First", "why"), error("Saved plan is stale", where=where)), ""
    )
    assert raised.where == where
    document = describe(raised)
    assert [(item["code"], item["summary"]) for item in document["diagnostics"]] == [
        ("E-TOFU-FAILED", "First"),
        ("E-PLAN-STALE", "Saved plan is stale"),
    ]
    assert document["diagnostics"][1]["detail"] == "Saved plan is stale"
    assert document["diagnostics"][1]["where"] == {"file": "/srv/site/main.tf", "line": 3, "column": 7}


def test_exit_statuses_follow_the_cause() -> None:
    locked = failure("`tofu plan` in x", (error("Error acquiring the state lock", LOCKED),), "")
    assert isinstance(locked, BusyError)
    assert locked.exit_status is ExitStatus.BUSY
    down = failure("`tofu plan` in x", (error("error loading state: dial tcp"),), "")
    assert isinstance(down, UnreachableError)
    assert down.exit_status is ExitStatus.UNREACHABLE
    assert failure("`tofu plan` in x", (error("Other"),), "").exit_status is ExitStatus.FAILED


def test_the_holder_of_a_lock_is_read_as_far_as_it_is_told() -> None:
    assert read_holder(LOCKED) == LockHolder(
        id="5bbdb1d3",
        path="terraform.tfstate",
        operation="OperationTypeApply",
        who="ann@desk",
        version="1.12.6",
        created="2026-01-02 03:04:05.9 +0000 UTC",
    )
    raised = failure("`tofu plan` in x", (error("Error acquiring the state lock", LOCKED),), "")
    assert isinstance(raised, failures.StateLockedError)
    assert raised.holder == read_holder(LOCKED)
    assert "ann@desk holds lock 5bbdb1d3 for OperationTypeApply" in raised.detail
    # Terraform shows its own request where the holder should be, and the id of the holder before it.
    assert read_holder(LOCKED.replace("resource", "already locked: ID=lock-1\nresource")) == LockHolder(
        id="lock-1"
    )
    assert read_holder("Error message: HTTP remote state already locked, failed to read body") is None
    assert str(LockHolder(id="7")) == "somebody holds lock 7"


def test_plain_text_is_cut_into_findings() -> None:
    text = (
        "\nWarning: Old thing\n\nUse the new one.\n\n"
        "\nError: Invalid target address\n\nNo matching objects found.\n  Error: not a heading\n\nMore.\n\n"
    )
    assert [(item.severity, item.summary, item.detail) for item in read_text(text)] == [
        (Severity.WARNING, "Old thing", "Use the new one."),
        (
            Severity.ERROR,
            "Invalid target address",
            "No matching objects found.\n  Error: not a heading\n\nMore.",
        ),
    ]
    bare = read_text("Failed to load state: dial tcp: i/o timeout\n")
    assert [cause(item) for item in bare] == [failures.BackendUnreachableError]
    assert read_text(" \n") == ()


@pytest.mark.parametrize("engine", ["OpenTofu", "Terraform"])
def test_a_lock_is_told_with_its_holder_and_without_the_advice_to_do_without_locks(engine: str) -> None:
    detail = LOCKED.removesuffix("\n\n\nOpenTofu acquires") + ADVICE.format(engine=engine)
    for findings in ((error(LOCKING, detail),), read_text(f"Error: {LOCKING}\n\n{detail}\n")):
        told = failure("`tofu plan` in /srv", findings, "")
        text = str(describe(told))
        assert "-lock=false" not in text
        assert "ann@desk holds lock 5bbdb1d3" in text
        assert "stackyard state unlock 5bbdb1d3 --reason TEXT" in told.remedy
