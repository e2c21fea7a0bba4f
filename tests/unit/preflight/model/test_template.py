from __future__ import annotations

import contextlib
import time
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preflight.errors import PreflightError, Reason
from preflight.model.template import (
    Scope,
    check_template,
    holds,
    named_vars,
    render,
    render_text,
)

SCOPE = Scope(
    vars={
        "n": 5,
        "f": True,
        "no": "false",
        "nothing": None,
        "items": ["a", "{{ vars.who }}"],
        "cfg": {"root": "/srv", "logs": "{{ vars.cfg.root }}/logs"},
        "greet": "hi {{ vars.who }}",
        "who": "Bo",
        "text": "5",
        "a": "{{ vars.b }}",
        "b": "{{ vars.c.d }}",
        "c": {"d": "{{ vars.a }}"},
        "own": "x{{ vars.own }}",
        "evil": "{{ facts.hostname }}",
    },
    facts={"hostname": "{{ vars.n }}", "os": {"name": "linux"}, "disks": [{"path": "/"}]},
    env={"HOME": "/root", "EVIL": "{{ vars.who }}"},
    target={"name": "web-1"},
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("{{ vars.n }}", 5),
        ("{{ vars.f }}", True),
        ("{{ vars.nothing }}", None),
        ("{{ vars.text }}", "5"),
        ("{{ 5 }}", 5),
        ("{{ vars.items }}", ["a", "Bo"]),
        ("{{ vars.cfg }}", {"root": "/srv", "logs": "/srv/logs"}),
        ("{{ vars.greet }}", "hi Bo"),
        ("n={{ vars.n }} f={{ vars.f }} z={{ vars.nothing }}.", "n=5 f=true z=."),
        ("{{ vars.items }}\n", '["a", "Bo"]\n'),
        ("{{ vars.f and 'on' or 'off' }}", "on"),
        ("{{ 'on' if vars.no else 'off' }}", "off"),
        ("{{ vars.n == vars.text }}", True),
        ("{{ vars.text > 4 }}", True),
        ("{{ vars.items | join('-') }}", "a-Bo"),
        ("{{ vars['n'] + 1 }}", 6),
        ("{{ '-' * 3 }}", "---"),
        ("{{ [1, 2.5] | sum }}", 3.5),
        ("{{ 1.26 | round(1) }}", 1.3),
        ("{{ 1.21 | round(1, 'ceil') }}", 1.3),
        ("{{ [1, true] | join(', ') }}", "1, true"),
        ("{{ vars.who | replace('B', 'M') }}", "Mo"),
        ("{{ vars.cfg | tojson }}", '{"root": "/srv", "logs": "/srv/logs"}'),
        ("{{ vars.nope.deep | default('d') }}", "d"),
        ("{{ facts.disks[0].path }}", "/"),
        ("{{ target.name }}", "web-1"),
        ("{{ env.HOME }}", "/root"),
        ("{{ vars.n in [4, 5] }}", True),
        ("${#name} {% x %} {# c #} {{ vars.n }}", "${#name} {% x %} {# c #} 5"),
        ("{{ '{{' }}", "{{"),
    ],
)
def test_a_template_gives(text: str, value: object) -> None:
    result = render(text, SCOPE)
    assert result == value
    assert type(result) is type(value)


def test_rendering_goes_through_lists_and_maps_but_not_keys() -> None:
    written = {"{{ vars.n }}": ["{{ vars.n }}", {"x": "{{ vars.who }}"}], "y": 1}
    assert render(written, SCOPE) == {"{{ vars.n }}": [5, {"x": "Bo"}], "y": 1}


@pytest.mark.parametrize(
    "text", ["{{ facts.hostname }}", "{{ vars.evil }}", "{{ env.EVIL }}", "x{{ env.EVIL }}"]
)
def test_text_from_a_target_is_never_rendered(text: str) -> None:
    assert "{{ vars." in cast("str", render(text, SCOPE))


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=40))
def test_whatever_a_fact_holds_comes_out_as_it_is(fact: str) -> None:
    scope = Scope(vars={"v": "{{ facts.x }}"}, facts={"x": fact})
    assert render(["{{ facts.x }}", "<{{ vars.v }}>"], scope) == [fact, f"<{fact}>"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ vars.nope }}", "vars.nope is not defined"),
        ("{{ facts.os.nam }}", "facts.os.nam is not defined; did you mean 'name'?"),
        ("{{ vars.nope.deep }}", "vars.nope.deep is not defined"),
        ("{{ foo }}", "names begin with vars."),
        ("{{ vars.a }}", "circle: vars.a -> vars.b -> vars.c.d -> vars.a"),
        ("{{ vars.own }}", "circle: vars.own -> vars.own"),
        ("{{ vars.n && 1 }}", "write 'and' for &&"),
        ("{{ vars.f ? 1 : 2 }}", "A if CONDITION else B"),
        ("{{.Names}}", "for braces that are meant as they are"),
        ("{{ }}", "xpected an expression"),
        ("{{ vars.n + 'a' }}", "unsupported operand"),
        ("{{ 'x' > 3 }}", "not supported between"),
        ("{{ vars.n / 0 }}", "division by zero"),
        ("{{ vars.items[9] }}", "item 9 of a list of 2"),
        ("{{ vars.items | nosuch }}", "nosuch"),
        ("{{ vars.who.upper }}", "is () missing"),
    ],
)
def test_what_can_not_be_rendered_says_why(text: str, said: str) -> None:
    with pytest.raises(PreflightError) as caught:
        render(text, SCOPE)
    assert caught.value.reason is Reason.TEMPLATE_ERROR
    assert said in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__ }}",
        "{{ ''['__class__'] }}",
        "{{ vars.__class__.__mro__ }}",
        "{{ [].__class__.__base__.__subclasses__() }}",
        "{{ vars.items.append(1) }}",
        "{{ vars.cfg.update({}) }}",
        "{{ self.__init__ }}",
        "{{ lipsum(1000000000) }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ vars.items | attr('__class__') }}",
        "{{ vars.items | map(attribute='__class__') | list }}",
        "{{ range.__call__ }}",
        "{{ range(10**9) }}",
        "{{ range(100000) | map('string') | join | length * 10**9 }}x{{ 'x' * 10**9 }}",
        "{{ [0] * 10**9 }}",
        "{{ 1.5 | round(10**9, 'ceil') }}",
        "{{ [[1], [2]] | sum(start=[]) }}",
        "{{ range(99999) | map('replace', '1', 'x' * 99999) | join }}",
        "{{ range(99999) | map('replace', '1', 'x' * 99999) }}",
        "{{ vars.who * vars.items }}",
        "{{ 10**(10**10) }}",
        "{{ '%9999999999d' % 1 }}",
        "{{ 'x'.center(10**9) }}",
        "{{ 'x' | center(10**9) }}",
        "{{ 'x' | indent(10**9) }}",
        "{{ ('x' * 99999) | replace('x', 'y' * 99999) }}",
        "{{ " + "(" * 2000 + ")" * 2000 + " }}",
        "{{ " + "-" * 5000 + "1 }}",
    ],
)
def test_the_sandbox_refuses_soon(text: str) -> None:
    start = time.process_time()
    with pytest.raises(PreflightError):
        render(text, SCOPE)
    assert time.process_time() - start < 2


def test_vars_that_double_are_bounded() -> None:
    doubling: dict[str, object] = {
        f"v{level}": f"{{{{ vars.v{level + 1} }}}}{{{{ vars.v{level + 1} }}}}"
        for level in range(30)
    }
    with pytest.raises(PreflightError, match="characters"):
        render("{{ vars.v0 }}", Scope(vars={**doubling, "v30": "x" * 1000}))


def test_lists_that_share_their_items_are_bounded() -> None:
    levels = range(12)
    shared: dict[str, object] = {f"v{n}": [f"{{{{ vars.v{n + 1} }}}}"] * 10 for n in levels}
    for text in ("{{ vars.v0 }}", "x{{ vars.v0 }}", "{{ vars.v0 | string }}"):
        with pytest.raises(PreflightError, match="characters"):
            render(text, Scope(vars={**shared, f"v{len(levels)}": "x"}))


def test_a_long_chain_of_vars_is_an_error_and_no_crash() -> None:
    chain: dict[str, object] = {f"v{n}": f"{{{{ vars.v{n + 1} }}}}" for n in range(500)}
    with pytest.raises(PreflightError, match="deep"):
        render("{{ vars.v0 }}", Scope(vars={**chain, "v500": 1}))


def test_a_filter_can_not_change_the_vars() -> None:
    names: dict[str, object] = {"items": [3, 1, 2]}
    assert render("{{ vars.items | sort }}", Scope(vars=names)) == [1, 2, 3]
    assert names == {"items": [3, 1, 2]}


@pytest.mark.parametrize(
    ("when", "holding"),
    [
        (None, True),
        (True, True),
        (False, False),
        ("vars.f", True),
        ("{{ vars.f }}", True),
        ("vars.no", False),
        ("not vars.no", True),
        ("vars.f and vars.no", False),
        ("vars.no or vars.f", True),
        ("facts.os.name == 'linux'", True),
        ("facts.os.name in ['windows', 'darwin']", False),
        ("vars.text == 5", True),
        ("vars.text != 5", False),
        ("vars.f == 'true'", True),
        ("1 < vars.n < 9", True),
        ("vars.nope is defined", False),
        ("false", False),
        ("0", False),
        ("vars.items", True),
    ],
)
def test_a_condition(when: str | bool | None, holding: bool) -> None:
    assert holds(when, SCOPE) is holding


@pytest.mark.parametrize("when", ["", "vars.nope", "{{ vars.f }} and more", "vars.f }} {{ vars.f"])
def test_a_condition_that_is_none_is_an_error(when: str) -> None:
    with pytest.raises(PreflightError):
        holds(when, SCOPE)


def test_a_file_may_have_blocks_and_comments() -> None:
    text = "{# why #}\n{% for d in facts.disks %}\n- {{ d.path }}\n{% endfor %}\nend\n"
    assert render_text(text, SCOPE) == "- /\nend\n"
    assert render_text("{% if vars.no %}a{% else %}b{% endif %}", SCOPE) == "b"


@pytest.mark.parametrize(
    "text",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% include '/etc/passwd' %}",
        "{% import 'x' as y %}",
        "{% for a in vars.items recursive %}{{ loop(vars.items) }}{% endfor %}",
        "{% for a in vars.nope %}{% endfor %}",
        "{% if %}",
    ],
)
def test_a_file_has_bounds_too(text: str) -> None:
    with pytest.raises(PreflightError):
        render_text(text, SCOPE)


def test_the_names_of_an_item_are_known_and_are_data() -> None:
    scope = Scope(vars={"x": 1}, item={"item": {"n": "{{ vars.x }}"}, "index": 2})
    assert render("{{ item.n }}/{{ index }}", scope) == "{{ vars.x }}/2"
    assert render_text("{% if index == 2 %}{{ item.n }}{% endif %}", scope) == "{{ vars.x }}"
    assert holds("index > 1", scope)
    with pytest.raises(PreflightError, match="item is not a name"):
        render("{{ item }}", SCOPE)


def test_a_check_without_values_finds_syntax_and_unknown_names() -> None:
    assert check_template("no braces && at all") == ""
    assert check_template("{{ vars.anything }}") == ""
    assert "foo is not a name" in check_template("{{ foo }}")
    assert "one expression" in check_template("{{ vars.a }} x", condition=True)


def test_vars_that_are_needed_for_certain_are_known() -> None:
    text = "{{ vars.a.b }} {{ vars['x'].y[0].z }} {{ vars.q | default(1) }} {{ facts.f }}"
    assert named_vars(text) == {("a", "b"), ("x", "y")}


@settings(max_examples=50, deadline=None)
@given(st.text("{}%# varsn.|'\"()+-*<>=!&abc0123456789[]", max_size=30))
def test_any_text_renders_or_is_our_error(text: str) -> None:
    with contextlib.suppress(PreflightError):
        render("{{" + text + "}}", SCOPE)
    with contextlib.suppress(PreflightError):
        assert holds(text, SCOPE) in (True, False)
