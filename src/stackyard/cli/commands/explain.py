"""`stackyard explain`: what an env, a cluster or a node comes to, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.base.redaction import Redactor
from stackyard.cli.command import Command
from stackyard.cli.commands.site import site_option
from stackyard.cli.completions import complete_explained
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.base.errors import Location
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.sources.site.explain import ExplainedValue
    from stackyard.sources.site.resolver import ConfigResolver

__all__ = ["explain"]

_KIND, _HYPERVISOR = "env", "hypervisor"
# Keys and lists of disks are longer than a line; --json has all of them.
_LONGEST_SHOWN = 60


@click.command("explain", cls=Command)
@click.argument("env", metavar="TARGET", shell_complete=complete_explained)
@click.option(
    "-H", "--host", metavar="NODE", help="The node (default: the node of the env, or the only node)."
)
@click.option("--tfvars", "form", flag_value="tfvars", help="Print the OpenTofu variables.")
@click.option("--ansible", "form", flag_value="ansible", help="Print the Ansible variables.")
@click.option(
    "--out", metavar="FILE", help="Write the variables, including secrets, to a file that only you can read."
)
@site_option
@pass_session
def explain(session: Session, /, env: str, said: str | None, **values: Any) -> Result:
    """Show each resolved value of a TARGET, with its file and line.

    The target is an env (`dev`, or `env:dev`), or a cluster or node (`hypervisor:home`).
    Values that no file sets are marked as defaults. Secrets are masked; only the file of --out contains them.

    \b
    stackyard explain dev --host pve1
    stackyard explain hypervisor:home
    stackyard explain dev --host pve1 --tfvars --out dev.tfvars.json
    """  # noqa: D301 - click reads the control character
    from stackyard.sources.site.resolver import ConfigResolver  # lazy: pydantic, only when this verb runs

    host, form, out = values["host"], values["form"], values["out"]
    if out is not None and form is None:
        raise UsageError("--out goes with --tfvars or --ansible.")
    kind, colon, name = env.partition(":")
    if colon and kind not in (_KIND, _HYPERVISOR):
        raise UsageError(f"`{env}` is neither `env:NAME` nor `hypervisor:NAME`; the name alone is an env.")
    if kind == _HYPERVISOR and colon and (form or host):
        raise UsageError("--tfvars, --ansible and --host are for envs.")
    resolver = ConfigResolver(said, emit=session.emit)
    if kind == _HYPERVISOR and colon:
        return _explain_hypervisor(resolver, name)
    wanted = name if colon else env
    if form is None:
        return _explain_env(resolver, wanted, host)
    return _variables(resolver, wanted, host, form=form, out=out)


def _variables(resolver: ConfigResolver, env: str, host: str | None, *, form: str, out: str | None) -> Result:
    is_tofu = form == "tfvars"
    config = resolver.resolve_env(env, host) if is_tofu else resolver.resolve_ansible_vars(env)
    if out is not None:
        (resolver.write_tfvars if is_tofu else resolver.write_ansible_vars)(config, out)
        return Result(document={"file": out}, show=lambda writer: writer.line(f"Written to {out}."))
    masked = _mask_secrets(config, config)
    return Result(document=masked, show=lambda writer: _show_json(writer, masked))


def _mask_secrets(shown: Any, config: Mapping[str, Any]) -> Any:
    """Return values with every secret masked that the variables of the env hold; no other can be in them."""
    token = config.get("api_token", "")
    guests = [guest["auth_token"] for guest in config.get("vms", ())]
    redact = Redactor([token, token.partition("=")[2], config.get("root_password", ""), *guests])

    def mask(value: Any) -> Any:
        if isinstance(value, str):
            return redact(value)
        if isinstance(value, dict):
            return {key: mask(part) for key, part in value.items()}
        return [mask(part) for part in value] if isinstance(value, list | tuple) else value

    return mask(shown)


def _show_json(writer: TextWriter, document: dict[str, Any]) -> None:
    import orjson  # lazy: for this text alone

    for line in orjson.dumps(document, option=orjson.OPT_INDENT_2).decode().splitlines():
        writer.line(line)


def _explain_env(resolver: ConfigResolver, env: str, host: str | None) -> Result:
    from stackyard.sources.site.explain import explain_env  # lazy: as the resolver itself

    values = explain_env(resolver, env, host)
    shown = _mask_secrets([value.value for value in values], resolver.resolve_env(env, host))
    node = resolver.node(env, host)
    rows = list(zip(values, shown, strict=True))
    return Result(
        document={
            "env": env,
            "node": node,
            "values": [_document(value, masked) for value, masked in rows],
            "desired": resolver.resolve_desired(env, host).model_dump(mode="json", exclude_defaults=True),
        },
        show=lambda writer: _show(writer, rows),
    )


def _explain_hypervisor(resolver: ConfigResolver, name: str) -> Result:
    from stackyard.path.explain_hypervisor import explain_target  # lazy: as the resolver itself

    values, desired = explain_target(resolver, name)
    rows = [(value, value.value) for value in values]
    return Result(
        document={
            "hypervisor": name,
            "values": [_document(value, shown) for value, shown in rows],
            "desired": desired.model_dump(mode="json", exclude_defaults=True),
        },
        show=lambda writer: _show(writer, rows),
    )


def _document(value: ExplainedValue, masked: Any) -> dict[str, Any]:
    where = value.where
    return {
        "section": value.section,
        "key": value.key,
        "value": masked,
        "file": None if where is None else where.path,
        "line": None if where is None else where.line,
        "column": None if where is None else where.column,
        "why": value.why,
    }


def _show(writer: TextWriter, rows: list[tuple[ExplainedValue, Any]]) -> None:
    section = None
    table: list[tuple[str, str, str, str]] = []
    for value, masked in rows:
        title = value.section if value.section != section else ""
        section = value.section
        where = "default" if value.where is None else _format_place(value.where)
        table.append(
            (title, value.key, _format_value(masked), f"{where} ({value.why})" if value.why else where)
        )
    writer.table(("of", "key", "value", "from"), table)


def _format_place(where: Location) -> str:
    return where.path if where.line is None else f"{where.path}:{where.line}"


def _format_value(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ", ".join(map(_short, value)) or "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "-" if value is None or value == "" else _short(str(value))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."
