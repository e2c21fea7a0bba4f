"""The template engine: Jinja2's sandbox, with only what is listed here, and with bounds.

Imported on the first template. No attribute of a Python object can be reached except the methods
listed in :mod:`preflight.model.dialect`; there is no recursion, and loops are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import cast

from jinja2 import Template, nodes
from jinja2.environment import TemplateExpression
from jinja2.exceptions import TemplateError, TemplateSyntaxError, UndefinedError
from jinja2.meta import find_undeclared_variables

from preflight.errors import PreflightError
from preflight.model.dialect import BUDGET, Dialect
from preflight.model.lazy import Lazy, Vars
from preflight.model.rewriter import Rewriter
from preflight.model.template import Scope, template_error
from preflight.model.values import MAX_TEXT, Missing, plain, truth

_ROOTS = ("vars", "facts", "env", "target")
_MAX_LOOPS = 100_000
_VALUES = Dialect(blocks=False)
_FILES = Dialect(blocks=True)

_FORBIDDEN = (
    nodes.Macro,
    nodes.CallBlock,
    nodes.Include,
    nodes.Import,
    nodes.FromImport,
    nodes.Extends,
    nodes.Block,
)
# What other template languages write, and what it is here.
_CURES = (
    ("&&", "write 'and' for &&"),
    ("||", "write 'or' for ||"),
    ("!", "write 'not' for !"),
    ("?", "write 'A if CONDITION else B' for CONDITION ? A : B"),
    ("{{.", "write {{ '{{' }} for braces that are meant as they are"),
)


class Renderer:
    """Renders the author's texts against one scope; vars are resolved once and kept."""

    def __init__(self, scope: Scope) -> None:
        self._names: dict[str, object] = {
            "vars": Lazy(scope.vars, "vars", Vars(self._text_or_value)),
            "facts": Lazy(scope.facts, "facts"),
            "env": Lazy(scope.env, "env"),
            "target": Lazy(scope.target, "target"),
            **Lazy(scope.item, "for_each"),
        }
        self._extra = tuple(scope.item)

    def value(self, value: object) -> object:
        """Render through lists and maps; the result holds plain values only."""
        if isinstance(value, str):
            with _named(value):
                return plain(self._text_or_value(value))
        if isinstance(value, dict):
            return {key: self.value(one) for key, one in cast("dict[str, object]", value).items()}
        if isinstance(value, list):
            return [self.value(item) for item in cast("list[object]", value)]
        return value

    def text(self, text: str) -> str:
        """Render a file's text."""
        template = _compile_file(text, self._extra)
        with _named("the template"):
            return _bounded(template.render(self._context()))

    def truth(self, condition: str) -> bool:
        """Judge a ``when``."""
        expression = _compile(condition, True, self._extra)
        with _named(condition):
            return truth(self._evaluate(cast("TemplateExpression", expression)))

    def _text_or_value(self, text: str) -> object:
        if "{{" not in text:
            return text
        compiled = _compile(text, False, self._extra)
        with _named(text):
            if isinstance(compiled, Template):
                return _bounded(compiled.render(self._context()))
            return self._evaluate(compiled)

    def _evaluate(self, expression: TemplateExpression) -> object:
        value = cast("object", expression(self._context()))
        if isinstance(value, Missing):
            value.refuse()
        return _bounded(value) if isinstance(value, str) else value

    def _context(self) -> dict[str, object]:
        return {**self._names, BUDGET: [_MAX_LOOPS]}


def parse(text: str, *, condition: bool, names: tuple[str, ...] = ()) -> nodes.Template:
    """Parse and check a text; raises with the text's beginning and what is wrong."""
    source = text.strip() if condition else text
    if condition and not source.startswith("{{"):
        source = f"{{{{ {source} }}}}"
    tree = _parse(_VALUES, source, names)
    if condition and _lone(tree) is None:
        raise template_error(f"{_short(text)}: 'when' must be one expression, without other text")
    return tree


def named_vars(text: str, *, condition: bool, names: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """List the chains below ``vars``, except where a template says what to do without them."""
    return set(_chains(parse(text, condition=condition, names=names)))


def _chains(node: nodes.Node) -> Iterator[tuple[str, ...]]:
    if isinstance(node, nodes.Filter) and node.name in ("default", "d"):
        return
    if isinstance(node, nodes.Test) and node.name in ("defined", "undefined"):
        return
    if isinstance(node, nodes.CondExpr | nodes.And | nodes.Or):
        return  # what is behind a condition may never be looked at
    chain = _chain(node)
    if chain and chain[0] == "vars":
        yield chain[1:]
        return
    for child in node.iter_child_nodes():
        yield from _chains(child)


def _chain(node: nodes.Node) -> tuple[str, ...]:
    if isinstance(node, nodes.Name):
        return (node.name,)
    if isinstance(node, nodes.Getattr):
        before = _chain(node.node)
        return (*before, node.attr) if before else ()
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
        before = _chain(node.node)
        key = cast("object", node.arg.value)
        return (*before, key) if before and isinstance(key, str) else ()
    return ()


def _parse(dialect: Dialect, source: str, names: tuple[str, ...] = ()) -> nodes.Template:
    try:
        tree = dialect.parse(source)
        for bad in tree.find_all(_FORBIDDEN):
            name = type(bad).__name__.lower()
            raise TemplateSyntaxError(f"{name} is not possible in a template", bad.lineno)
        for loop in tree.find_all(nodes.For):
            if loop.recursive:
                raise TemplateSyntaxError("a recursive loop is not possible", loop.lineno)
        _check_names(tree, names)
        _check_filters(dialect, tree)
    except TemplateSyntaxError as exc:
        raise template_error(f"{_short(source)}: {_explain(exc, source)}") from exc
    except RecursionError:
        raise template_error(f"{_short(source)}: is nested too deeply") from None
    return tree


def _check_names(tree: nodes.Template, names: tuple[str, ...]) -> None:
    for name in sorted(find_undeclared_variables(tree)):
        if name not in (*_ROOTS, "range", *names):
            raise TemplateSyntaxError(
                f"{name} is not a name here: names begin with vars., facts., env. or target.", 1
            )


def _check_filters(dialect: Dialect, tree: nodes.Template) -> None:
    for node in tree.find_all((nodes.Filter, nodes.Test)):
        known = dialect.filters if isinstance(node, nodes.Filter) else dialect.tests
        name = str(node.name)
        if name not in known:
            kind = type(node).__name__.lower()
            raise TemplateSyntaxError(f"there is no {kind} {name!r}", node.lineno)


def _lone(tree: nodes.Template) -> nodes.Expr | None:
    match tree.body:
        case [nodes.Output(nodes=[expression])] if not isinstance(expression, nodes.TemplateData):
            return expression
        case _:
            return None


@lru_cache(maxsize=4096)
def _compile(text: str, condition: bool, names: tuple[str, ...]) -> Template | TemplateExpression:
    tree = parse(text, condition=condition, names=names)
    expression = _lone(tree)
    with _named(text):
        Rewriter(_VALUES).visit(tree)
        if expression is None:
            return _VALUES.from_string(tree)
        expression = cast("nodes.Expr", _lone(tree))
        body: list[nodes.Node] = [nodes.Assign(nodes.Name("result", "store"), expression, lineno=1)]
        assign = nodes.Template(body, lineno=1).set_environment(_VALUES)
        return TemplateExpression(_VALUES.from_string(cast("nodes.Template", assign)), False)


@lru_cache(maxsize=64)
def _compile_file(text: str, names: tuple[str, ...]) -> Template:
    tree = _parse(_FILES, text, names)
    with _named("the template"):
        Rewriter(_FILES).visit(tree)
        return _FILES.from_string(tree)


class _named:
    """Turns what an expression raises into our error, which names the expression."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, exc: BaseException | None, tb: object) -> None:
        if exc is None or isinstance(exc, PreflightError) or not isinstance(exc, Exception):
            return
        if isinstance(exc, RecursionError | MemoryError):
            raise template_error(f"{_short(self._text)}: is too deep or too large") from None
        if isinstance(exc, UndefinedError | TemplateError):
            raise template_error(f"{_short(self._text)}: {exc.message}") from exc
        raise template_error(f"{_short(self._text)}: {exc}") from exc


def _bounded(value: str) -> str:
    if len(value) > MAX_TEXT:
        raise TemplateError(f"gives more than {MAX_TEXT} characters")
    return value


def _explain(exc: TemplateSyntaxError, source: str) -> str:
    line = f" in line {exc.lineno}" if "\n" in source else ""
    said = (exc.message or "is not an expression").rstrip(".")
    if "unexpected" in said or "expected" in said:
        for sign, cure in _CURES:
            if sign in source:
                return f"{said}{line}; {cure}"
    return f"{said}{line}"


def _short(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= 80 else one_line[:77] + "…"
