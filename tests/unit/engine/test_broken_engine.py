"""Programs that stand where an engine should be and fail in every way: one clear error each, nothing left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.support.engine import scripted_engine, workdir_in

from stackyard.base.errors import FileError, UsageError
from stackyard.base.process import ProgramMissingError
from stackyard.base.redaction import Redactor
from stackyard.engine import failures, invoke, statefile, tofu
from stackyard.engine.version import EngineBrokenError
from stackyard.engine.workdir import Limits, Workdir

SECRET = "hunter2-hunter2"
Verb = Callable[[Workdir], Awaitable[object]]

STREAMED: dict[str, Verb] = {
    "init": tofu.init,
    "plan": lambda workdir: tofu.plan(workdir, workdir.folder / "plans" / "plan"),
    "apply": lambda workdir: tofu.apply(workdir, workdir.folder / "plan"),
    "destroy": tofu.destroy,
}
DOCUMENTS: dict[str, Verb] = {
    "validate": tofu.validate,
    "show": tofu.show_state,
    "output": tofu.output,
    "providers schema": tofu.providers_schema,
    "state pull": statefile.state_pull,
}
PLAIN: dict[str, Verb] = {
    "state list": statefile.state_list,
    "state mv": lambda workdir: statefile.state_mv(workdir, "a", "b"),
    "state rm": lambda workdir: statefile.state_rm(workdir, ("a",)),
    "state push": lambda workdir: statefile.state_push(workdir, b"{}"),
    "import": lambda workdir: statefile.import_resource(workdir, "a", "id"),
    "force-unlock": lambda workdir: statefile.force_unlock(workdir, "id"),
}
ALL = {**STREAMED, **DOCUMENTS, **PLAIN}


def run(verb: Verb, tmp_path: Path, script: str, limits: Limits | None = None) -> object:
    """Run a verb with a program that does what the script says."""
    workdir = workdir_in(
        scripted_engine(tmp_path, script), tmp_path, redactor=Redactor([SECRET]), limits=limits or Limits()
    )

    async def call() -> object:
        return await verb(workdir)

    return asyncio.run(call())


@pytest.mark.parametrize("verb", ALL)
def test_a_failure_without_a_report_quotes_what_was_said(verb: str, tmp_path: Path) -> None:
    with pytest.raises(failures.TofuError) as caught:
        run(ALL[verb], tmp_path, f"echo 'cannot go on with {SECRET}' >&2; exit 3")
    told = caught.value.detail + "".join(item.detail for item in caught.value.diagnostics)
    assert "cannot go on with" in told
    assert SECRET not in told
    assert ("plan" if verb == "destroy" else verb) in caught.value.detail


@pytest.mark.parametrize("verb", ALL)
def test_a_death_by_a_signal_is_told(verb: str, tmp_path: Path) -> None:
    with pytest.raises(failures.TofuError, match=r"failed without a report\. It ended with signal 9"):
        run(ALL[verb], tmp_path, "kill -KILL $$")


@pytest.mark.parametrize("verb", ALL)
def test_a_verb_that_hangs_is_stopped(verb: str, tmp_path: Path) -> None:
    limits = Limits(read_s=0.2, work_s=0.2, grace_s=0.2)
    with pytest.raises(invoke.EngineTimeoutError, match=r"did not end within 0\.2 s") as caught:
        run(ALL[verb], tmp_path, 'echo \'{"a": "state"\'; exec sleep 600', limits)
    assert 'state"' not in caught.value.detail


# No output at all is how `state pull` says that there is no state.
NONSENSE = [
    (verb, answer)
    for verb in (*STREAMED, *DOCUMENTS)
    for answer in ("", "garbage", '{"cut": "of', "[]", "null")
    if (verb, answer) != ("state pull", "")
]


@pytest.mark.parametrize(("verb", "answer"), NONSENSE)
def test_success_with_an_answer_that_makes_no_sense_is_a_broken_engine(
    verb: str, answer: str, tmp_path: Path
) -> None:
    with pytest.raises(EngineBrokenError) as caught:
        run(ALL[verb], tmp_path, f"printf '%s' '{answer}'")
    assert verb in STREAMED or '"cut"' not in caught.value.detail


@pytest.mark.parametrize("verb", DOCUMENTS)
def test_an_object_in_an_unknown_form_is_told_or_passed_on(verb: str, tmp_path: Path) -> None:
    if verb in {"show", "providers schema"}:
        assert run(ALL[verb], tmp_path, """echo '{"diagnostics": 7}'""") == {"diagnostics": 7}
        return
    with pytest.raises(EngineBrokenError):
        run(ALL[verb], tmp_path, """echo '{"diagnostics": 7}'""")


MESSAGE = """echo '{"@level":"info","@message":"OpenTofu 1.12.6","type":"version"}'"""


def test_a_plan_that_was_not_written_is_a_broken_engine(tmp_path: Path) -> None:
    with pytest.raises(EngineBrokenError, match="wrote no plan"):
        run(STREAMED["plan"], tmp_path, MESSAGE)
    assert list((tmp_path / "plans").iterdir()) == []


def test_an_apply_that_was_cut_off_is_a_broken_engine(tmp_path: Path) -> None:
    with pytest.raises(EngineBrokenError, match="did not say what it changed"):
        run(STREAMED["apply"], tmp_path, MESSAGE + """; printf '{"@level":"info","@message":"App'""")


def test_a_failed_plan_leaves_the_older_plan_alone(tmp_path: Path) -> None:
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "plan").write_text("older")
    script = 'for last; do :; done; echo half > "${last#-out=}"; exit 1'
    with pytest.raises(failures.TofuError):
        run(STREAMED["plan"], tmp_path, script)
    assert [path.name for path in (tmp_path / "plans").iterdir()] == ["plan"]
    assert (tmp_path / "plans" / "plan").read_text() == "older"


def test_a_plan_that_cannot_be_written_is_told_before_the_engine_starts(tmp_path: Path) -> None:
    (tmp_path / "plans").write_text("a file where the folder should be")
    with pytest.raises(FileError):
        run(STREAMED["plan"], tmp_path, "touch started")
    assert not (tmp_path / "started").exists()


def test_a_folder_or_a_program_that_is_missing_is_told(tmp_path: Path) -> None:
    engine = scripted_engine(tmp_path, "true")
    with pytest.raises(FileError, match="nowhere"):
        asyncio.run(tofu.validate(workdir_in(engine, tmp_path / "nowhere")))
    engine.path.unlink()
    with pytest.raises(ProgramMissingError):
        asyncio.run(tofu.validate(workdir_in(engine, tmp_path)))


def test_nothing_to_remove_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        run(lambda workdir: statefile.state_rm(workdir, ()), tmp_path, "touch started")
    assert not (tmp_path / "started").exists()


def test_an_address_that_looks_like_an_option_stays_an_address(tmp_path: Path) -> None:
    run(lambda workdir: statefile.state_mv(workdir, "-force", "-state=x"), tmp_path, 'echo "$*" > said')
    assert (tmp_path / "said").read_text() == "state mv -no-color -lock-timeout=0ms -- -force -state=x\n"
