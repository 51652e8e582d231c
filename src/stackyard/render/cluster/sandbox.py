"""Templates in Jinja, run in a sandbox: an undefined name is an error, and nothing reaches the machine."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import InvalidInputError, Location
from stackyard.render.cluster.quoting import quote_hcl, quote_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    import jinja2

__all__ = ["TemplateError", "TemplateFile", "TemplateSet"]

# No file of an infrastructure is nearly as long; a template that repeats itself ends here.
_LONGEST_TEXT = 16 * 1024 * 1024


class TemplateError(InvalidInputError):
    """A template is not valid, uses a name that is not defined, or tries what the sandbox forbids."""

    code = "E-CLUSTER-TEMPLATE"
    summary = "A template of a cluster cannot be rendered"
    default_remedy = (
        "Correct the template; docs/reference/cluster-templates.md lists the values that it may use."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateFile:
    """A template.

    Attributes:
        path: Where it is, for errors.
        text: What is in it.
    """

    path: str
    text: str


class TemplateSet:
    """Templates by name, which may include each other and nothing else."""

    def __init__(self, templates: Mapping[str, TemplateFile]) -> None:
        self._templates = templates
        self._environment = _make_environment(templates)

    def render(self, name: str, values: Mapping[str, Any]) -> str:
        """Return the text that a template gives.

        Raises:
            TemplateError: It cannot be rendered; the error says in which line.
        """
        import jinja2  # lazy: for commands that render

        try:
            text = self._environment.get_template(name).render(values)
        except jinja2.TemplateSyntaxError as err:
            path = err.filename or self._templates[name].path
            raise TemplateError(f"{err.message}.", where=Location(path, err.lineno)) from err
        except Exception as err:
            raise TemplateError(_describe(err), where=self._locate(err, name)) from err
        if len(text) > _LONGEST_TEXT:
            raise TemplateError("The text is too long.", where=Location(self._templates[name].path))
        return text

    def _locate(self, err: Exception, name: str) -> Location:
        """Return the innermost line of a template that an error passed through."""
        paths = {template.path for template in self._templates.values()}
        for frame in reversed(traceback.extract_tb(err.__traceback__)):
            if frame.filename in paths:
                return Location(frame.filename, frame.lineno)
        return Location(self._templates[name].path)


def _describe(err: Exception) -> str:
    import jinja2  # lazy: for commands that render
    from jinja2.exceptions import SecurityError  # lazy: as above

    said = str(err).rstrip(".")
    if isinstance(err, SecurityError):
        return f"Templates are data, and this is not allowed in one: {said}."
    if isinstance(err, jinja2.UndefinedError):
        return f"A name has no value: {said}."
    if isinstance(err, MemoryError):
        return "It needs more memory than a template may use."
    if isinstance(err, jinja2.TemplateNotFound):
        return f"There is no template `{err.name}`."
    return f"{type(err).__name__}: {said}."


def _make_environment(templates: Mapping[str, TemplateFile]) -> jinja2.Environment:
    import jinja2  # lazy: for commands that render
    from jinja2.exceptions import SecurityError  # lazy: as above
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # lazy: as above

    class Environment(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset({"*", "**"})

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            # A short template must not fill the memory: only numbers are multiplied.
            numbers = isinstance(left, int | float) and isinstance(right, int | float)
            if not numbers or (operator == "**" and (abs(left) > 1 << 16 or right > 64)):
                raise SecurityError(f"`{operator}` with values of this size or type")
            return super().call_binop(context, operator, left, right)

    def load(name: str) -> tuple[str, str, None] | None:
        found = templates.get(name)
        return None if found is None else (found.text, found.path, None)

    environment = Environment(
        block_start_string="#%",
        block_end_string="%#",
        variable_start_string="#{",
        variable_end_string="}#",
        comment_start_string="#|",
        comment_end_string="#|",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        loader=jinja2.FunctionLoader(load),
    )
    environment.filters |= {"hcl": quote_hcl, "yaml": quote_yaml}
    return environment
