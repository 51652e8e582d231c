"""Reading YAML from outside.

libyaml reads it, and what it makes is counted while it does: it calls itself for each level, so that nesting
is refused before it is built. Aliases and merge keys are counted as what they represent. What is refused is
an error of PyYAML's own kind, a `yaml.MarkedYAMLError` with line and column.
"""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Any

import yaml
from yaml import MappingNode, ScalarNode
from yaml._yaml import CParser
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from stackyard.base.documents.limits import OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from yaml import Mark, Node

    from stackyard.base.documents.limits import DocumentLimits

__all__ = [
    "Limit",
    "LimitedParser",
    "YamlLimitError",
    "YamlValueError",
    "check_yaml",
    "parse_events",
    "parse_yaml",
    "parse_yaml_documents",
]

_INT = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"
_MERGE = "tag:yaml.org,2002:merge"
_VALUE = "tag:yaml.org,2002:value"

# libyaml compares each of them with all before it.
_MOST_TAG_DIRECTIVES = 100
_TAG_DIRECTIVE = re.compile("(?:\\A|[\r\n\x85\u2028\u2029])\ufeff*%TAG")
# PyYAML moves all keys behind it for each of them.
_MOST_MERGES = 1_000
# Numbers in sixties take a time that grows with the square of their length.
_LONGEST_NUMBER = 1_000
# Whole numbers beyond 2**61 can be chosen so that a dictionary takes all of them for the same place.
_LONGEST_NUMBER_AS_KEY = 16


class Limit(enum.Enum):
    """What there is too much of."""

    SIZE = enum.auto()
    DEPTH = enum.auto()
    VALUES = enum.auto()
    CIRCLE = enum.auto()
    NUMBER = enum.auto()


class YamlLimitError(yaml.MarkedYAMLError):
    """YAML is larger, deeper or fuller than the limits; nothing of it is used.

    Args:
        limit: What there is too much of.
        problem: The same for a user, with the number.
        mark: Where, if not everywhere.
    """

    def __init__(self, limit: Limit, problem: str, mark: Mark | None = None) -> None:
        super().__init__(problem=problem, problem_mark=mark)
        self.limit = limit


class YamlValueError(yaml.MarkedYAMLError):
    """A value cannot be read as what its tag or its looks say."""


class LimitedParser(CParser):
    """libyaml's parser, which refuses what is deeper or fuller than the limits while it makes nodes.

    Args:
        text: What to read.
        limits: What is taken.

    Raises:
        YamlLimitError: The text is too large.
        yaml.reader.ReaderError: The text is not Unicode.
    """

    def __init__(self, text: str, limits: DocumentLimits) -> None:
        _check_text(text, limits)
        try:
            super().__init__(text)
        except UnicodeEncodeError as err:
            raise _not_unicode(text, err) from err
        self._limits = limits
        self._depth = 0
        # A scalar in the deepest collection is a level further.
        self._deepest = limits.depth + 1
        self._values_left = limits.values

    def descend_resolver(self, parent: Node | None, index: object) -> None:
        """Count levels and values: libyaml itself would overrun its stack."""
        del index
        self._depth += 1
        self._values_left -= 1
        if self._depth > self._deepest or self._values_left < 0:
            is_deep = self._depth > self._deepest
            mark = None if parent is None else parent.start_mark
            raise _make_depth_error(self._limits, mark) if is_deep else _make_size_error(self._limits, mark)

    def ascend_resolver(self) -> None:
        """Come back up one level."""
        self._depth -= 1


class _Loader(LimitedParser, SafeConstructor, Resolver):
    """PyYAML's safe loader, on libyaml, within the limits."""

    def __init__(self, text: str, limits: DocumentLimits) -> None:
        LimitedParser.__init__(self, text, limits)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)

    def flatten_mapping(self, node: MappingNode) -> None:
        """Take over what merge keys name, where there are any."""
        merges = 0
        for key, _ in node.value:
            if key.tag in (_MERGE, _VALUE):
                merges += 1
            elif key.tag == _INT and len(key.value) > _LONGEST_NUMBER_AS_KEY:
                raise YamlLimitError(Limit.NUMBER, "the number is too long for a key", key.start_mark)
        if merges > _MOST_MERGES:
            problem = f"more than {_MOST_MERGES} merge keys in one mapping"
            raise YamlLimitError(Limit.VALUES, problem, node.start_mark)
        if merges:
            super().flatten_mapping(node)

    def construct_number(self, node: Any) -> Any:
        """Return a number of a length that someone can mean."""
        if type(node) is ScalarNode and len(node.value) > _LONGEST_NUMBER:
            problem = f"a number of more than {_LONGEST_NUMBER} characters"
            raise YamlLimitError(Limit.NUMBER, problem, node.start_mark)
        return self.construct_yaml_int(node) if node.tag == _INT else self.construct_yaml_float(node)


# The stubs know PyYAML's own loaders alone.
_ADD: Any = _Loader.add_constructor
for _tag in (_INT, _FLOAT):
    _ADD(_tag, _Loader.construct_number)


def parse_yaml(source: str | bytes, limits: DocumentLimits = OUTSIDE) -> Any:
    """Read YAML of one document, with the values that PyYAML's `safe_load` gives it; `None` if it is empty.

    An alias inside its own anchor, which PyYAML takes, is refused: a walk over the value would not end.

    Raises:
        yaml.YAMLError: It is not YAML, or holds what is not plain data; `YamlLimitError` beyond the limits.
    """
    text = source if isinstance(source, str) else _decode(source)
    loader = _Loader(text, limits)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if "*" in text and "&" in text:
            _check_aliases(node, limits)
        return _construct(loader, node)
    finally:
        loader.dispose()


def parse_yaml_documents(text: str, limits: DocumentLimits = OUTSIDE) -> Iterator[tuple[int, Any]]:
    """Yield the documents of a YAML text, each with the line that it begins on.

    Raises:
        yaml.YAMLError: As `parse_yaml`. The limits count for the whole text.
    """
    if "*" in text and "&" in text:
        check_yaml(text, limits)
    loader = _Loader(text, limits)
    try:
        while loader.check_node():
            if (node := loader.get_node()) is not None:
                yield node.start_mark.line + 1, _construct(loader, node)
    finally:
        loader.dispose()


def parse_events(text: str, limits: DocumentLimits = OUTSIDE) -> Iterator[Any]:
    """Yield libyaml's events; aliases are not followed.

    Raises:
        yaml.YAMLError: It is not YAML; `YamlLimitError` beyond the limits.
    """
    parser: Any = LimitedParser(text, limits)
    depth, left = 0, limits.values
    try:
        while (event := parser.get_event()) is not None:
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > limits.depth:
                    raise _make_depth_error(limits, event.start_mark)
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            left -= isinstance(event, yaml.NodeEvent)
            if left < 0:
                raise _make_size_error(limits, event.start_mark)
            yield event
    finally:
        parser.dispose()


def check_yaml(text: str, limits: DocumentLimits = OUTSIDE) -> None:
    """Refuse what is beyond the limits, for another reader that has none; it may have several documents.

    Raises:
        yaml.YAMLError: It is not YAML; `YamlLimitError` beyond the limits.
    """
    # Of each collection that is open: the anchor, how many values it represents, and how deep they go.
    around: list[list[Any]] = [[None, 0, 0]]
    known: dict[str | None, tuple[int, int] | None] = {}
    for event in parse_events(text, limits):
        if isinstance(event, yaml.CollectionStartEvent):
            around.append([event.anchor, 1, 1])
            known[event.anchor] = None
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, size, depth = around.pop()
            known[anchor] = (size, depth)
        elif isinstance(event, yaml.AliasEvent):
            found = known.get(event.anchor, (1, 0))
            if found is None:
                raise _circular(event.start_mark)
            size, depth = found
        elif isinstance(event, yaml.ScalarEvent):
            size, depth = 1, 0
            known[event.anchor] = (1, 0)
        else:
            continue
        outer = around[-1]
        outer[1], outer[2] = outer[1] + size, max(outer[2], depth + 1)
        _check_expanded(outer[1], outer[2] - (len(around) == 1), limits, event.start_mark)


def _check_text(text: str, limits: DocumentLimits) -> None:
    if len(text) > limits.size:
        raise YamlLimitError(Limit.SIZE, f"larger than {limits.size} characters")
    if text.count("%TAG") > _MOST_TAG_DIRECTIVES:
        found = sum(1 for _ in _TAG_DIRECTIVE.finditer(text))
        if found > _MOST_TAG_DIRECTIVES:
            raise YamlLimitError(Limit.VALUES, f"more than {_MOST_TAG_DIRECTIVES} directives `%TAG`")


def _not_unicode(text: str, err: UnicodeEncodeError) -> yaml.reader.ReaderError:
    # libyaml is given UTF-8, and half of a pair has none.
    return yaml.reader.ReaderError("<text>", err.start, ord(text[err.start]), "unicode", "no character")


def _decode(source: bytes) -> str:
    try:
        return source.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        raise yaml.reader.ReaderError("<text>", err.start, source[err.start], "utf-8", err.reason) from err


def _check_aliases(root: Node, limits: DocumentLimits) -> None:
    """Count what nodes represent: a node that several aliases name is there once, and counts for each."""
    # How many values a collection represents, and how deep they go; nothing while it is open.
    known: dict[int, tuple[int, int] | None] = {}
    stack: list[tuple[Node, Iterator[Node], list[int]]] = []
    if type(root) is not ScalarNode:
        stack.append((root, _children(root), [1, 1]))
        known[id(root)] = None
    while stack:
        node, children, total = stack[-1]
        for child in children:
            if type(child) is ScalarNode:
                total[0] += 1
                continue
            if id(child) not in known:
                known[id(child)] = None
                stack.append((child, _children(child), [1, 1]))
                break
            if (found := known[id(child)]) is None:
                raise _circular(child.start_mark)
            total[0] += found[0]
            total[1] = max(total[1], found[1] + 1)
            _check_expanded(total[0], total[1], limits, node.start_mark)
        else:
            stack.pop()
            _check_expanded(total[0], total[1], limits, node.start_mark)
            known[id(node)] = (total[0], total[1])
            if stack:
                outer = stack[-1][2]
                outer[0] += total[0]
                outer[1] = max(outer[1], total[1] + 1)


def _children(node: Node) -> Iterator[Node]:
    if type(node) is MappingNode:
        for pair in node.value:
            yield from pair
    else:
        yield from node.value


def _check_expanded(size: int, depth: int, limits: DocumentLimits, mark: Mark) -> None:
    if size > limits.values:
        raise YamlLimitError(Limit.VALUES, f"aliases expand to more than {limits.values} values", mark)
    if depth > limits.depth:
        raise _make_depth_error(limits, mark)


def _construct(loader: _Loader, node: Node) -> Any:
    try:
        return loader.construct_document(node)
    except yaml.YAMLError:
        raise
    except RecursionError as err:
        raise YamlLimitError(Limit.DEPTH, "nested too deeply", node.start_mark) from err
    # PyYAML lets errors of its own making through where a value is not what its tag says.
    except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError) as err:
        found = _find_unreadable(node)
        problem = "a value cannot be read as what its tag or its looks say"
        raise YamlValueError(problem=problem, problem_mark=found.start_mark) from err


def _find_unreadable(root: Node) -> Node:
    """Return the scalar that PyYAML cannot read, or the root if it is none of them."""
    pending, seen = [root], {id(root)}
    while pending:
        node = pending.pop()
        if type(node) is not ScalarNode:
            new = [child for child in _children(node) if id(child) not in seen]
            seen.update(map(id, new))
            pending.extend(reversed(new))
            continue
        try:
            SafeConstructor().construct_document(node)
        except yaml.YAMLError:
            continue
        except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError):
            return node
    return root


def _make_depth_error(limits: DocumentLimits, mark: Any) -> YamlLimitError:
    return YamlLimitError(Limit.DEPTH, f"nested deeper than {limits.depth} levels", mark)


def _make_size_error(limits: DocumentLimits, mark: Any) -> YamlLimitError:
    return YamlLimitError(Limit.VALUES, f"more than {limits.values} values", mark)


def _circular(mark: Any) -> YamlLimitError:
    return YamlLimitError(Limit.CIRCLE, "an alias leads back into its own anchor", mark)
