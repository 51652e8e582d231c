"""The lab's shell does what bash does with the scripts of clients, and refuses what it does not know."""

from __future__ import annotations

import asyncio
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pvelab.ssh.programs import builtin, text
from pvelab.ssh.shell import Shell, Streams
from pvelab.ssh.shell.streams import BytesSource, CaptureSink, Sink, Source


class MemoryFiles:
    """Files in a dictionary."""

    def __init__(self, texts: dict[str, bytes]) -> None:
        self.texts = texts

    async def source(self, path: str) -> Source:
        if path not in self.texts:
            raise FileNotFoundError(2, "No such file or directory", path)
        return BytesSource(self.texts[path])

    async def sink(self, path: str, *, append: bool) -> Sink:
        return MemorySink(self.texts, path, self.texts.get(path, b"") if append else b"")

    async def kind(self, path: str) -> str | None:
        return "file" if path in self.texts else None


class MemorySink:
    def __init__(self, texts: dict[str, bytes], path: str, before: bytes) -> None:
        self.texts, self.path, self.data = texts, path, before

    async def write(self, data: bytes) -> None:
        self.data += data

    async def close(self) -> None:
        self.texts[self.path] = self.data


def run(script: str, files: dict[str, bytes] | None = None, stdin: bytes = b"") -> tuple[int, str, str]:
    """Run a script; return its exit status and what it wrote on each output."""

    async def main() -> tuple[int, str, str]:
        out, err = CaptureSink(), CaptureSink()
        shell = Shell({**builtin.PROGRAMS, **text.PROGRAMS}, MemoryFiles(files if files is not None else {}))
        status = await shell.run(script, Streams(stdin=BytesSource(stdin), stdout=out, stderr=err))
        return status, out.data.decode(), err.data.decode()

    return asyncio.run(main())


SAME_AS_BASH = [
    "echo one two   three",
    "echo 'a  b' \"c  d\" e\\ f",
    "echo -n x; echo y",
    'x=1; y="$x 2"; echo $y "$y" \'$y\'',
    'x="a b"; set -- $x; echo done',
    'echo ${missing:-default} ${missing-other} "${x:-}" end',
    "x=; echo ${x:-empty} [${x-kept}]",
    "true && echo yes || echo no",
    "false && echo yes || echo no",
    "false || true && echo both",
    "! false && echo negated",
    "if true; then echo a; elif true; then echo b; else echo c; fi",
    "if false; then echo a; elif true; then echo b; else echo c; fi",
    "if false; then echo a; elif false; then echo b; else echo c; fi",
    'if [ "1" = "1" ]; then echo same; fi',
    "[ 3 -gt 2 ] && [ 2 -le 2 ] && [ -n x ] && [ -z '' ] && echo all",
    "f(){ echo \"$1-$2-$#\"; }; f a 'b c'",
    "f(){ echo \"$@\"; }; f a 'b c' d",
    "f(){ return_me=1; }; f; echo $return_me",
    "echo a | cat | cat",
    "echo 'a:b:c' | cut -d : -f 2",
    "echo \"x 'y' z\" | cut -d \\' -f 2",
    "echo abc | grep -c b; echo abc | grep -q z; echo $?",
    "echo 'one\ntwo\nthree' | grep -v two | wc -l",
    "echo $(echo nested $(echo deep))",
    'x=$(echo 1; echo 2); echo "$x"; echo $x',
    "x=$(false); echo $?",
    "x=old; x=new true; echo $x",
    "set -e; true; echo on; false; echo never",
    "set -e; if false; then echo no; fi; false || echo kept; echo end",
    "set -e; ! true; echo still",
    "{ echo group; false; } || echo after",
    "( x=1; echo $x ); echo out",
    "exit 3; echo never",
    "echo to stderr >&2; echo ok",
    "echo hidden > /dev/null; echo shown",
    "cat /no/such/file 2>/dev/null || echo MISSING",
    "echo aXa | sed 's/a/b/g'",
    "echo 'lxc.idmap: u 0 1\nother: 1' | sed '/^lxc\\.idmap:/d'",
    "bash -c 'echo $0 $1' name arg",
    "bash -c 'echo \"it'\"'\"'s\"'",
    "export A=1 B='2 3'; echo $A $B",
    "# a comment\necho after # another",
    "echo a\\\nb",
    "echo $",
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not on PATH")
@pytest.mark.parametrize("script", SAME_AS_BASH)
def test_a_script_does_what_bash_does(script: str) -> None:
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False, env={"LANG": "C"}
    )
    status, out, err = run(script)
    assert (status, out.replace("\t", " ")) == (done.returncode, done.stdout)
    assert bool(err) == bool(done.stderr)


def test_the_probe_of_the_provider_finds_root() -> None:
    probe = (
        'if [ "$(echo 0)" = "0" ]; then echo "0"; elif [ $(nothing 2>&1 | grep "APIVER" | wc -l) -gt 0 ] '
        '|| nothing >/dev/null 2>&1; then echo "1"; else echo "0"; fi'
    )
    assert run(probe) == (0, "0\n", "")


def test_redirections_write_append_and_read_files() -> None:
    files = {"/in": b"text\n"}
    script = "echo one > /out; echo two >> /out; cat < /in >> /out; echo kept > /err 2>&1"
    assert run(script, files) == (0, "", "")
    assert files["/out"] == b"one\ntwo\ntext\n"
    assert files["/err"] == b"kept\n"


def test_sed_changes_a_file_in_place() -> None:
    files = {"/c": b"a: 1\nlxc.idmap: u 0 1\nlxc.idmap: g 0 1\n"}
    assert run("sed -i '/^lxc\\.idmap:/d' /c; echo 'lxc.idmap: u 5 6' | cat >> /c", files)[0] == 0
    assert files["/c"] == b"a: 1\nlxc.idmap: u 5 6\n"


def test_standard_input_reaches_the_first_program() -> None:
    assert run("cat | wc -c", stdin=b"x" * 100_000)[1] == "100000\n"


@pytest.mark.parametrize(
    ("script", "status", "said"),
    [
        ("nothing here", 127, "bash: line 1: nothing: command not found"),
        ("/usr/bin/nothing", 127, "/usr/bin/nothing: No such file or directory"),
        ("/opt/echo hi", 127, "/opt/echo: No such file or directory"),
        ("for x in a; do echo $x; done", 2, "does not know `for'"),
        ("while true; do :; done", 2, "does not know `while'"),
        ("echo `date`", 2, "not backquotes"),
        ("echo $((1 + 1))", 2, "does not compute"),
        ("sleep 1 & echo", 2, "in the background"),
        ("echo 'open", 2, "unexpected EOF"),
        ('echo "open', 2, "unexpected EOF"),
        ("if true; then echo", 2, "syntax error"),
        ("echo a; ; echo b", 2, "syntax error"),
        ("( echo", 2, "syntax error"),
        ("echo )", 2, "syntax error"),
        ("| cat", 2, "syntax error"),
        ("echo ${x:=1}", 2, "defaults (:-) only"),
        ("echo ${x%y}", 2, "bad substitution"),
        ("cat > ", 2, "syntax error"),
        ("cat < /missing", 1, "/missing: No such file or directory"),
        ("f(){ f; }; f", 1, "nesting level exceeded"),
        ("[ 1 -eq x ]", 2, "not understood"),
        ("[ 1", 2, "missing `]'"),
        ("grep '[' x", 2, "grep: "),
        ("sed '/a/!d;s/x' y", 1, "the lab's sed knows"),
        ("bash -c", 2, "requires an argument"),
        ("bash script.sh", 127, "no scripts in files"),
    ],
)
def test_what_it_cannot_do_is_said(script: str, status: int, said: str) -> None:
    ended, _, err = run(script)
    assert ended == status
    assert said in err


@given(st.text(alphabet="ab$(){}[]|&;<>'\"\\ \n#=!`~-0:", max_size=40))
def test_no_text_at_all_breaks_it(script: str) -> None:
    status, _, _ = run(script)
    assert 0 <= status <= 255


def test_deep_nesting_is_refused_and_not_a_crash() -> None:
    assert run("(" * 500 + "echo" + ")" * 500)[0] == 2
    assert run("echo " + "$(echo " * 500 + "x" + ")" * 500)[0] == 2
