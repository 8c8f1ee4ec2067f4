"""Mutants of Python: what each operator makes, what is left out, and laws over arbitrary source."""

import ast
import inspect
import re
import textwrap

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from palestra.errors import BundleError
from palestra.gate.mutants import OPERATORS, mutants_of, python_mutants
from palestra.gate.mutants import equivalent as rules


def changed(source, operator, function=None):
    """The lines that ``operator`` writes, stripped, in order."""
    made = python_mutants(textwrap.dedent(source), function, operators=[operator])
    return [
        next(line[1:].strip() for line in mutant.diff.split("\n")[3:] if line.startswith("+")) for mutant in made.live
    ]


@pytest.mark.parametrize(
    ("operator", "body", "expected"),
    [
        ("arithmetic", "return a + b", ["return a - b"]),
        ("arithmetic", "return (a + b) * c", ["return a + b + c", "return (a - b) * c"]),
        ("arithmetic", "a //= b; return a", ["a *= b; return a"]),
        ("arithmetic", "return -a", ["return a"]),
        ("arithmetic", "return '%s' % a + 'x'", []),
        ("comparison", "return a < b == c", ["return a >= b == c", "return a < b != c"]),
        ("comparison", "return a in b", ["return a not in b"]),
        ("comparison", "return a is None", ["return a is not None"]),
        ("boundary", "return a < b", ["return a <= b"]),
        ("boundary", "return a == b", []),
        ("boundary", "return a[1:b]", ["return a[1:b - 1]"]),
        ("boundary", "return list(range(a, b))", ["return list(range(a, b - 1))"]),
        ("boolean", "return a and b or c", ["return (a and b) and c", "return (a or b) or c"]),
        ("boolean", "return 1 if a else 2", ["return 1 if (not a) else 2"]),
        ("boolean", "return not a", ["return a"]),
        ("boolean", "return [x for x in a if f(x)]", ["return [x for x in a if (not f(x))]"]),
        ("constant", "return 3 ** a", ["return 4 ** a", "return 2 ** a"]),
        ("constant", "return 0 ** a", ["return 1 ** a", "return (-1) ** a"]),
        ("constant", "return 'x'", ["return ''"]),
        ("constant", "return ''", ["return 'mutant'"]),
        ("constant", "return a(True, None)", ["return a(False, None)", "return a(True, 0)"]),
        ("constant", "return f'{a}'", ["return ''"]),
        ("constant", "return a is None", []),
        ("return", "return a.b", ["return None"]),
        ("return", "return f(a)", ["return None", "return not f(a)"]),
        ("return", "return None", []),
        ("deletion", "a.sort(); return a", ["pass; return a"]),
        ("deletion", "del a[0]; raise E", ["pass; raise E", "del a[0]; pass"]),
        ("exception", "raise ValueError(a)", ["raise RuntimeError"]),
        ("argument", "return f(a, b, k=c)", ["return f(b, a, k=c)", "return f(a, b)"]),
        ("argument", "return f(*a, b)", []),
        ("argument", "return a - b", ["return b - a"]),
        ("argument", "return a * b", []),
    ],
)
def test_each_operator(operator, body, expected):
    assert changed(f"def f(a, b, c):\n    {body}\n", operator) == expected


def test_loops():
    source = """
        def f(xs):
            for x in xs:
                if x:
                    break
                g(x)
            while xs:
                if g():
                    h()
    """
    made = python_mutants(textwrap.dedent(source), operators=["loop"]).live
    added = [[line[1:] for line in mutant.diff.split("\n")[3:] if line.startswith("+")] for mutant in made]
    assert added == [
        ["        g(x); break"],
        ["    for x in ():"],
        ["    for x in reversed(list(xs)):"],
        ["            continue"],
        ["        break"],
        ["    while False:"],
    ]
    assert all(compile(mutant.source, "m", "exec") for mutant in made)


def test_exceptions_caught():
    source = "def f(a):\n    try:\n        a()\n    except KeyError:\n        return 1\n"
    assert changed(source, "exception") == ["raise", "except ZeroDivisionError:"]


def test_the_mutant_says_where_and_what():
    source = "import os\n\n\ndef f(a):\n    b = 'é'\n    return b + a\n"
    (mutant,) = python_mutants(source, "f", operators=["arithmetic"], name="x.py").live
    assert (mutant.operator, mutant.line) == ("arithmetic", 6)
    assert mutant.diff == "--- a/x.py\n+++ b/x.py\n@@ -5,2 +5,2 @@\n     b = 'é'\n-    return b + a\n+    return b - a"
    assert mutant.source == source.replace("b + a", "b - a")


@pytest.mark.parametrize(
    ("body", "operator", "rule"),
    [
        ("x = 5\n    return a", "constant", rules.NEVER_READ),
        ("x = 5\n    return a", "deletion", rules.NEVER_READ),
        ("return a\n    g()", "deletion", rules.UNREACHABLE),
        ("if 0:\n        g()\n    return a", "deletion", rules.UNREACHABLE),
        ("return a\n    g(1)", "constant", rules.SAME_CODE),
        ("raise ValueError('bad')", "constant", rules.MESSAGE),
        ("assert a, 'bad'", "constant", rules.MESSAGE),
        ("for x in a:\n        continue", "deletion", rules.SAME_CODE),
        ("return -0", "arithmetic", rules.SAME_CODE),
    ],
)
def test_equivalent_mutants_are_set_apart(body, operator, rule):
    made = python_mutants(f"def f(a):\n    {body}\n", operators=[operator])
    assert made.equivalent and {found for _, found in made.equivalent} == {rule}


def test_a_local_that_may_be_read_elsewhere_is_not_equivalent():
    for body in (
        "x = 5\n    return locals()",
        "global x\n    x = 5",
        "x = 5\n    return lambda: x",
        "x = 5\n    x += a",
    ):
        made = python_mutants(f"def f(a):\n    {body}\n", operators=["constant"])
        assert not [rule for _, rule in made.equivalent if rule == rules.NEVER_READ], body


def test_docstrings_annotations_and_decorators_are_never_changed():
    source = '@d(1)\ndef f(a: "int" = 2) -> "int":\n    """Doc 3."""\n    x: "str"\n    return a\n'
    made = python_mutants(source, operators=["constant", "deletion"])
    assert [mutant.source for mutant in made.live] == [source.replace("= 2", "= 3"), source.replace("= 2", "= 1")]


def test_the_function_asked_for_alone():
    source = "def f(a):\n    return a + 1\n\n\nclass C:\n    def g(self, a):\n        return a - 1\n"
    assert {mutant.line for mutant in python_mutants(source, "C.g").live} == {7}
    assert {mutant.line for mutant in python_mutants(source).live} == {2, 7}
    with pytest.raises(BundleError, match=r"no function 'C.h'.*did you mean C.g"):
        python_mutants(source, "C.h")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("def f(:\n", r"s\.py:1: is not Python"),
        ("x = 1\0", "is not Python"),
        ("(" * 3000, "is not Python"),
        ("def f():\n    return " + "-" * 50_000 + "1\n", "deep|not Python"),
        ("#" * 1_000_001, "at most 1000000"),
    ],
)
def test_what_cannot_be_mutated_is_said(source, told):
    with pytest.raises(BundleError, match=told):
        python_mutants(source, name="s.py")


def test_a_limit_keeps_every_operator_and_is_drawn_by_seed():
    source = inspect.getsource(textwrap)
    every = python_mutants(source)
    some = python_mutants(source, limit=30, seed=1)
    assert some.of == every.of == len(every.live) > 100 and len(some.live) == 30
    assert {mutant.operator for mutant in some.live} == {mutant.operator for mutant in every.live}
    assert some == python_mutants(source, limit=30, seed=1) != python_mutants(source, limit=30, seed=2)


@pytest.mark.parametrize("module", ["bisect", "string"])
def test_laws_over_real_modules(module):
    """Every mutant compiles, differs from the source in one place, is unique, and its diff carries the change."""
    source = inspect.getsource(__import__(module))
    made = python_mutants(source)
    sources = [mutant.source for mutant in made.live] + [mutant.source for mutant, _ in made.equivalent]
    assert len(set(sources)) == len(sources) and source not in sources
    assert {mutant.operator for mutant in made.live} <= set(OPERATORS)
    for mutant in made.live:
        ast.parse(mutant.source)
        lines = mutant.diff.split("\n")[3:]
        old = "\n".join(line[1:] for line in lines if line[0] in " -")
        new = "\n".join(line[1:] for line in lines if line[0] in " +")
        assert old in source and new in mutant.source


@settings(max_examples=60)
@given(st.text(max_size=200))
def test_any_text_gives_mutants_or_a_bundle_error(text):
    try:
        made = python_mutants(text)
    except BundleError:
        return
    for mutant in made.live:
        ast.parse(mutant.source)


EXPRESSIONS = st.recursive(
    st.sampled_from(["a", "b", "1", "'é'", "f(a, b)", "a[1:b]", "None"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "**", "<", "and", "or", "in", "%"]), inner).map(" ".join),
        inner.map(lambda e: f"not {e}"),
        inner.map(lambda e: f"-{e}"),
        st.tuples(inner, inner).map(lambda p: f"{p[0]} if {p[1]} else b"),
        st.tuples(inner, inner).map(lambda p: f"[x for x in {p[0]} if {p[1]}]"),
    ),
    max_leaves=8,
)


@settings(max_examples=150)
@given(EXPRESSIONS)
def test_a_mutant_changes_one_node_and_nothing_around_it(expression):
    """Reading the mutant gives the tree that was meant: precedence never tears what stands around."""
    source = f"def f(a, b):\n    return {expression}\n"
    assume(parses(source))
    for mutant in python_mutants(source, operators=["comparison"]).live:
        assert shape(mutant.source) == shape(source)


def parses(source):
    try:
        return bool(ast.parse(source))
    except SyntaxError:
        return False


def shape(source):
    return re.sub(r"(Not)?(Lt|GtE|In)\(\)", "op", ast.dump(ast.parse(source)))


def test_the_language_is_known_by_the_name():
    assert mutants_of("def f(a):\n    return a + 1\n", "x.py").of > 2
    assert mutants_of("int f(int a) {\n    return a + 1;\n}\n", "x.c").of > 2
    assert mutants_of("anything", "x.txt") is None
