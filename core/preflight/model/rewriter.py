"""What an expression means here, where that differs from Jinja2's: its tree is changed."""

from __future__ import annotations

from typing import cast

from jinja2 import Environment, nodes
from jinja2.visitor import NodeTransformer


class Rewriter(NodeTransformer):
    """Gives conditions and comparisons their meaning here, and lets loops be counted.

    ``not``, ``and``, ``or`` and ``if`` take ``false`` and ``no`` for false, because a variable of
    the command line is always text; for the same reason ``==`` compares ``8080`` with ``"8080"``.
    """

    def __init__(self, dialect: Environment) -> None:
        self._dialect = dialect

    def visit_Not(self, node: nodes.Not) -> nodes.Node:
        """Judge the operand by :func:`~preflight.model.values.truth`."""
        node = cast("nodes.Not", self.generic_visit(node))
        node.node = self._filter(node.node, "_truth")
        return node

    def visit_And(self, node: nodes.And) -> nodes.Node:
        """Give the right operand where the left one is true."""
        node = cast("nodes.And", self.generic_visit(node))
        return self._choice(node, self._filter(node.left, "_truth"), node.right, node.left)

    def visit_Or(self, node: nodes.Or) -> nodes.Node:
        """Give the left operand where it is true."""
        node = cast("nodes.Or", self.generic_visit(node))
        return self._choice(node, self._filter(node.left, "_truth"), node.left, node.right)

    def visit_CondExpr(self, node: nodes.CondExpr) -> nodes.Node:
        """Judge the condition by :func:`~preflight.model.values.truth`."""
        node = cast("nodes.CondExpr", self.generic_visit(node))
        node.test = self._filter(node.test, "_truth")
        return node

    def visit_If(self, node: nodes.If) -> nodes.Node:
        """Judge the condition by :func:`~preflight.model.values.truth`."""
        node = cast("nodes.If", self.generic_visit(node))
        node.test = self._filter(cast("nodes.Expr", node.test), "_truth")
        return node

    def visit_For(self, node: nodes.For) -> nodes.Node:
        """Count the rounds."""
        node = cast("nodes.For", self.generic_visit(node))
        node.iter = self._filter(cast("nodes.Expr", node.iter), "_counted")
        return node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        """Compare by :func:`~preflight.model.values.compare`; a chain stays as it is."""
        node = cast("nodes.Compare", self.generic_visit(node))
        if len(node.ops) != 1 or node.ops[0].op in ("in", "notin"):
            return node
        operand = node.ops[0]
        args: list[nodes.Expr] = [nodes.Const(operand.op), operand.expr]
        return self._own(nodes.Test(node.expr, "_compare", args, [], None, None), node)

    def _filter(self, node: nodes.Expr, name: str) -> nodes.Expr:
        return self._own(nodes.Filter(node, name, [], [], None, None), node)

    def _choice(
        self, old: nodes.Node, test: nodes.Expr, yes: nodes.Expr, no: nodes.Expr
    ) -> nodes.Expr:
        return self._own(nodes.CondExpr(test, yes, no), old)

    def _own(self, new: nodes.Expr, old: nodes.Node) -> nodes.Expr:
        new.set_lineno(old.lineno)
        new.set_environment(self._dialect)
        return new
