"""The grader of hidden calls: right is right, wrong is wrong, and no trick changes either."""

import os
import signal
import textwrap
from dataclasses import replace

import pytest
import pytest_asyncio

from palestra.types import Score, Unscored
from palestra.verify.compare import Rules
from palestra.verify.forkers import Forkers
from palestra.verify.function import Call, FunctionCalls
from tests.verify.grading import left, scored, task


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def forkers():
    async with Forkers(1, packages=("numpy",), preload=("numpy",)) as some:
        yield some


pytestmark = pytest.mark.asyncio(loop_scope="module")
DOUBLE = (Call("1", "2"), Call("2", "4"), Call("'a'", "'aa'"), Call("[]", "[]"))


async def double(forkers, source, **settings):
    grader = FunctionCalls("f", calls=DOUBLE, forkers=forkers, **{"total_s": 5.0, "call_s": 0.3, **settings})
    return await scored(grader, {"solution.py": textwrap.dedent(source)})


async def test_right_and_partly_right(forkers):
    score = await double(forkers, "def f(x): return x * 2")
    assert (score.value, score.components) == (1.0, {"passed": 1.0, "loaded": 1.0, "tampered": 0.0})
    part = "def f(x): return x * 2 if x != 2 else 5"
    score = await double(forkers, part)
    assert score.value == 0.75 and score.evidence == "3 of 4 calls are right; gave another value: 1"
    assert (await double(forkers, part, credit="all")).value == 0.0


async def test_calls_of_the_task(forkers):
    grader = FunctionCalls("f", forkers=forkers)
    facts = {"calls": [{"args": "1, b=2", "expected": "3"}]}
    assert (await scored(grader, {"solution.py": "def f(a, b): return a + b"}, facts)).value == 1.0


@pytest.mark.parametrize("facts", [{}, {"calls": []}, {"calls": ["1"]}, {"calls": [{"args": "1", "expected": "x y"}]}])
async def test_a_task_without_readable_calls_is_unscored(forkers, facts):
    found = await FunctionCalls("f", forkers=forkers).grade(task(facts), left({"solution.py": "def f(x): return x"}))
    assert isinstance(found, Unscored) and "t" in found.reason


async def test_a_grader_that_cannot_work_is_unscored():
    async with Forkers(1, packages=("no-such-package",)) as lacking:
        found = await FunctionCalls("f", calls=DOUBLE, forkers=lacking).grade(task(), left({"solution.py": "f = 1"}))
    assert isinstance(found, Unscored) and "no-such-package" in found.reason


async def test_one_zygote_for_one_grading():
    score = await FunctionCalls("f", calls=DOUBLE).grade(task(), left({"solution.py": "def f(x): return x * 2"}))
    assert isinstance(score, Score) and score.value == 1.0


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, "there is no solution.py"),
        ({"solution.py": b"\xff"}, "not UTF-8"),
        ({"solution.py": "def f(x) return x"}, "its import raised SyntaxError"),
        ({"solution.py": "a = '\0'"}, "its import raised"),
        ({"solution.py": "def g(x): return 2 * x"}, "its import raised AttributeError"),
        ({"solution.py": "f = 5"}, "not bound to something callable"),
        ({"solution.py": "raise SystemExit(0)"}, "its import raised SystemExit"),
        ({"solution.py": "import os; os._exit(0)"}, "its import ended the process (exit code 0)"),
        ({"solution.py": "while True: pass"}, "its import took more than 0.5 s"),
        ({"solution.py": "import toolz"}, "its import raised ModuleNotFoundError"),
        ({"solution.py": "import palestra"}, "its import raised ModuleNotFoundError"),
        ({"solution.py": "import wire"}, "its import raised ModuleNotFoundError"),
        ({"solution.py": "(" * 100_000}, "its import raised"),
    ],
)
async def test_nothing_to_call_scores_nothing(forkers, files, told):
    if "import wire" in str(files):
        files = {"solution.py": "import sys; del sys.modules['wire']; import wire"}
    score = await scored(FunctionCalls("f", calls=DOUBLE, forkers=forkers, total_s=1.0), files)
    assert score.value == 0.0 and told in score.evidence


@pytest.mark.parametrize(
    ("source", "call", "is_right"),
    [
        ("def f(x):\n yield x\n yield x + 1", Call("1", "iter([1, 2])"), True),
        ("def f(x):\n yield x\n yield x + 1", Call("1", "[1, 2]"), False),
        ("def f(x):\n while True:\n  yield x\n  x += 1", Call("1", "first([1, 2, 3])"), True),
        ("def f(x):\n while True:\n  yield x\n  x += 1", Call("1", "iter([1, 2, 3])"), False),
        ("def f(x):\n yield x\n raise KeyError", Call("1", "raises(KeyError)"), True),
        ("def f(x): raise ValueError(x)", Call("1", "raises(ValueError)"), True),
        ("def f(x): return b''.decode() or int('x')", Call("1", "raises(ValueError)"), True),
        ("def f(x): raise Exception", Call("1", "raises(ValueError)"), False),
        ("def f(x): return ValueError()", Call("1", "raises(ValueError)"), False),
        ("def f(x): raise ValueError", Call("1", "None"), False),
        ("class ValueError(Exception): pass\ndef f(x): raise ValueError", Call("1", "raises(ValueError)"), False),
        ("class Mine(KeyError): pass\ndef f(x): raise Mine", Call("1", "raises(Mine)"), True),
        ("class Mine(KeyError): pass\ndef f(x): raise Mine", Call("1", "raises(LookupError)"), True),
        ("def f(x): raise SystemExit", Call("1", "raises(SystemExit)"), True),
        ("def f(x): return {x, 2}", Call("1", "{2, 1}"), True),
        ("def f(x): return 0.1 + 0.2", Call("1", "0.3"), False),
        ("def f(x): return float('nan')", Call("1", "nan"), True),
        ("import numpy as np\ndef f(x): return np.arange(4).reshape(2, 2)",
         Call("1", "array([[0, 1], [2, 3]], dtype='int64')"), True),
        ("def f(x): return x.sum()", Call("array([1.5, 2.0])", "float64(3.5)"), True),
        ("class P:\n def __init__(s, x): s.x = x\ndef f(p): return [P(p.x + 1)]", Call("P(1)", "[P(x=2)]"), True),
        ("class P:\n def __init__(s, x): s.x = x\ndef f(p): return [P(p.x + 1)]", Call("P(1)", "[P(x=3)]"), False),
        ("class Q: x = 2\ndef f(p): return Q()", Call("1", "P(x=2)"), False),
        ("def f(x, y=[]):\n y.append(x)\n return y", Call("1", "[1]"), True),
        ("def f(*a, **k): return (a, k)", Call("1, b=-inf", "((1,), {'b': -inf})"), True),
    ],
)  # fmt: skip
async def test_one_call(forkers, source, call, is_right):
    grader = FunctionCalls("f", calls=(call,), classes=(("P", ("x",)),), iterate=5, forkers=forkers)
    assert (await scored(grader, {"solution.py": source})).value == float(is_right)


async def test_the_rules_are_the_graders(forkers):
    rules = Rules(rel_tol=1e-9, ordered=False)
    grader = FunctionCalls("f", calls=(Call("", "[0.3, 1]"),), rules=rules, forkers=forkers)
    assert (await scored(grader, {"solution.py": "def f(): return [1, 0.1 + 0.2]"})).value == 1.0


async def test_arguments_are_fresh_for_each_call(forkers):
    grader = FunctionCalls("f", calls=(Call("[1]", "[1, 1]"),) * 3, forkers=forkers)
    assert (await scored(grader, {"solution.py": "def f(x):\n x.append(1)\n return x"})).value == 1.0


async def test_evidence_names_calls_and_tells_no_value(forkers):
    grader = FunctionCalls("f", calls=(Call("'question'", "'a secret'"),) * 30, forkers=forkers)
    score = await scored(grader, {"solution.py": "def f(x): return x"})
    assert score.evidence == "0 of 30 calls are right; gave another value: 0, 1, 2, 3, 4, 5, 6, 7 …"


async def test_words_of_graded_code_are_made_harmless(forkers):
    source = "def f(x): return type('\\x1b[2J\\u202eE' * 50, (), {})()"
    score = await double(forkers, source)
    assert score.evidence.isascii() and score.evidence.isprintable() and len(score.evidence) < 300


PACKAGE = {
    "src/shapes/__init__.py": "from .area import area\n",
    "src/shapes/area.py": "import math\nfrom shapes.parts.unit import UNIT\ndef area(r): return r * r * UNIT\n",
    "src/shapes/parts/unit.py": "UNIT = 3\n",
    "src/math.py": "raise RuntimeError('shadows')\n",
    "src/data.bin": b"\xff\xfe",
    "solution.py": "def area(r): return -1\n",
}


async def test_a_function_of_a_package_is_imported_from_its_files(forkers):
    grader = FunctionCalls(
        "area", "src/shapes/area.py", "shapes.area", "src", calls=(Call("2", "12"),), forkers=forkers
    )
    assert (await scored(grader, PACKAGE)).value == 1.0
    top = FunctionCalls("area", "src/shapes/__init__.py", "shapes", "src", calls=(Call("2", "12"),), forkers=forkers)
    assert (await scored(top, PACKAGE)).value == 1.0
    broken = {**PACKAGE, "src/shapes/parts/unit.py": "UNIT = 4\n"}
    assert (await scored(grader, broken)).value == 0.0


async def test_a_module_that_is_not_there_or_is_no_text_scores_0(forkers):
    grader = FunctionCalls("area", "src/shapes/area.py", "shapes.other", "src", calls=(Call("2", "12"),))
    assert "import raised" in (await scored(replace(grader, forkers=forkers), PACKAGE)).evidence
    binary = {**PACKAGE, "src/shapes/bad.py": b"\xff"}
    assert (await scored(replace(grader, forkers=forkers), binary)).evidence == "a module is not UTF-8 text"
    assert "there is no" in (await scored(replace(grader, artifact="src/no.py"), PACKAGE)).evidence


async def test_the_interpreter_has_the_variables_it_is_given():
    source = "import os, time\ndef f(): return os.environ['PYTHONHASHSEED'], time.tzname[0]"
    async with Forkers(1, env={"PYTHONHASHSEED": "7", "TZ": "JST-9"}) as some:
        grader = FunctionCalls("f", calls=(Call("", "('7', 'JST')"),), forkers=some)
        assert (await scored(grader, {"solution.py": source})).value == 1.0


async def test_a_zygote_that_was_lost_is_replaced():
    async with Forkers(1) as some:
        grader = FunctionCalls("f", calls=(Call("1", "2"),), forkers=some)
        assert (await scored(grader, {"solution.py": "def f(x): return x * 2"})).value == 1.0
        os.kill(some._free[0]._init.pid, signal.SIGKILL)
        assert (await scored(grader, {"solution.py": "def f(x): return x * 2"})).value == 1.0
