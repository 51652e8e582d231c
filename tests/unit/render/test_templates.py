"""Texts beside secrets reach the real engine exactly as they were written."""

from __future__ import annotations

import json
import os
import subprocess
import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.support.engine import real_engine

from stackyard.desired import Secret
from stackyard.engine.version import Flavour
from stackyard.render.terms import template, variable

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

PLAIN, ESCAPED = Secret(secret="plain"), Secret(secret="escaped", is_escaped=True)
# The secrets are made of what templates and JSON give a meaning.
VALUES = {PLAIN: 'va${l}u%{e}"$', ESCAPED: '\u0301q"uo\\te$${x}\n"'}
Parts = tuple[str | Secret, ...]

MARKS = st.text(alphabet='$%{}"\\~ a\n\r', max_size=6)
ANY = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
PARTS = st.lists(MARKS | ANY | st.sampled_from([PLAIN, ESCAPED]), max_size=7).map(tuple)
KNOWN: list[Parts] = [
    *(("pa$", PLAIN), ("$$", PLAIN, "$"), ("$", "{x}"), ("%", "{if}"), ("%", PLAIN), ("$%", PLAIN, "{")),
    *((PLAIN, PLAIN), ("$${", PLAIN, "}"), ("a", "$", "$", ESCAPED), ("\\$", PLAIN), ("$",), ("$", "")),
    *(("\r", PLAIN), ("\r${x}",), ("$\r{",), ("\r\n", PLAIN, "\r"), ("$\r", PLAIN), ("\r$", PLAIN, "\n")),
    *(("$", "", PLAIN), ("${", PLAIN), ("%%", ESCAPED, "%{"), ('"$', PLAIN, '"')),
]


def expected(parts: Parts) -> str:
    """Return the text; the engine brings all of it into one form of Unicode."""
    texts = (part if isinstance(part, str) else _value(part) for part in parts)
    return unicodedata.normalize("NFC", "".join(texts))


def _value(secret: Secret) -> str:
    value = VALUES[secret]
    if not secret.is_escaped:
        return value
    # The engine writes these so in JSON.
    written = json.dumps(value, ensure_ascii=False)[1:-1]
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def read_back(folder: Path, texts: list[Parts]) -> list[str]:
    """Give texts to the engine as outputs, and return what it makes of them."""
    document = {
        "variable": {variable(secret): {"type": "string", "sensitive": True} for secret in VALUES},
        "output": {
            f"text{number}": {"value": template(parts), "sensitive": True}
            for number, parts in enumerate(texts)
        },
    }
    (folder / "main.tf.json").write_text(json.dumps(document))
    (folder / "terraform.tfstate").unlink(missing_ok=True)
    values = {f"TF_VAR_{variable(secret)}": value for secret, value in VALUES.items()}
    env = {**os.environ, "TF_CLI_CONFIG_FILE": "/dev/null", **values}

    def engine(*arguments: str) -> str:
        done = subprocess.run(
            [real_engine(Flavour.TOFU).path, *arguments],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    engine("apply", "-auto-approve", "-no-color", "-input=false")
    found = json.loads(engine("output", "-json"))
    return [found[f"text{number}"]["value"] for number in range(len(texts))]


def test_a_dollar_before_a_secret_is_a_dollar(tmp_path: Path) -> None:
    assert read_back(tmp_path, KNOWN) == [expected(parts) for parts in KNOWN]


# Each example is many texts and two starts of the engine; making a failing one smaller would take minutes.
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(texts=st.lists(PARTS, min_size=40, max_size=80))
def test_every_text_survives_exactly(tmp_path_factory: pytest.TempPathFactory, texts: list[Parts]) -> None:
    found = read_back(tmp_path_factory.mktemp("texts"), texts)
    pairs = zip(texts, found, strict=True)
    assert [(parts, text) for parts, text in pairs if text != expected(parts)] == []
