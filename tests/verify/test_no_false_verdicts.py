"""Verdicts against an independent route: the same sources run by a plain script in a sandbox, and compared by ``repr``.

PAIRS=2000 in the environment asks for that many pairs of solution and expected verdict; the default is a slice of them.
Sources are gold, and gold changed in one to three places by our mutators; attacks must all score 0."""

import json
import os
import sys
from random import Random

import pytest

from palestra.gate.mutants import mutants_of
from palestra.sandboxes import Limits, open_sandbox
from palestra.verify.forkers import Forkers
from palestra.verify.function import Call, FunctionCalls
from palestra.verify.languages import LANGUAGES
from palestra.verify.stdio import BUILD, Case, Stdio
from palestra.verify.visible import python_view
from tests.verify.attacks import ATTACKS
from tests.verify.grading import left, task

PAIRS = int(os.environ.get("PAIRS", "80"))

# No sets and no dicts of more than one key: ``repr`` is to say all that comparison says.
FUNCTIONS = {
    "def f(xs, k=2):\n    out = []\n    for i in range(0, len(xs), k):\n        if k < 1:\n            break\n"
    "        out.append(tuple(xs[i:i + k]))\n    return out": [
        "[1, 2, 3, 4, 5]", "[]", "'abcd', 3", "[1], k=5", "None"],
    "def f(text):\n    words = text.split()\n    if not words:\n        raise ValueError(text)\n"
    "    return ' '.join(w[0].upper() + w[1:] for w in words if len(w) > 1 or w == 'a')": [
        "'the quick a b'", "''", "' x '", "'one'", "5"],
    "def f(a, b):\n    while b != 0:\n        a, b = b, a % b\n    return a if a >= 0 else -a": [
        "12, 18", "7, 0", "-4, 6", "0, 5", "17, 5", "100, 75"],
    "def f(n, base=10):\n    if n < 0 or base < 2:\n        raise ValueError('negative')\n    digits = []\n"
    "    while n > 0:\n        digits.append(n % base)\n        n //= base\n    return digits[::-1] or [0]": [
        "255, 16", "0", "7, 2", "-1", "1234", "5, 1"],
    "def f(values):\n    total = 0.0\n    count = 0\n    for v in values:\n        if v is not None and not v < 0:\n"
    "            total += v\n            count += 1\n    return total / count if count > 0 else None": [
        "[1, 2, 4]", "[]", "[None, 3.5]", "[-1, 2]", "[0.1, 0.2]", "['a']"],
    "def f(s):\n    stack = []\n    for c in s:\n        if c in '([':\n            stack.append(c)\n"
    "        elif c in ')]':\n            if not stack or (stack.pop() == '(') != (c == ')'):\n"
    "                return False\n    return not stack": ["'([])'", "'(]'", "''", "'(('", "')'", "'a(b)[c]'"],
}  # fmt: skip

ORACLE = """
import json, os, resource, signal, sys
def one(source, args):
    names, said = {}, []
    try:
        exec(source, names)
    except BaseException as error:
        return ["!" + type(error).__name__] * len(args)
    for text in args:
        signal.setitimer(signal.ITIMER_PROF, 0.15)
        try:
            said.append(repr(eval(f"f({text})", {"f": names["f"]})))
        except BaseException as error:
            said.append("!" + type(error).__name__)
    return said
class Late(BaseException): pass
def late(*_): raise Late
signal.signal(signal.SIGPROF, late)
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
for source, args in json.load(sys.stdin):
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, json.dumps(one(source, args)).encode())
        os._exit(0)
    os.close(write)
    said = b""
    while part := os.read(read, 1 << 16): said += part
    os.close(read)
    os.wait()
    print((said or b"null").decode(), flush=True)
"""


async def by_script(pairs):
    """What each (source, args) gives when a plain script calls it: one ``repr`` or "!Exception" per call."""
    limits = Limits(wall_s=600, cpu_s=600, memory_mib=None, output_bytes=1 << 26)
    async with open_sandbox("local", mounts=python_view(), limits=limits) as box:
        await box.write("oracle.py", ORACLE.encode())
        ran = await box.exec([sys.executable, "-I", "oracle.py"], stdin=json.dumps(pairs).encode())
    assert ran.exit_code == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def solutions(golds, name, count):
    """``count`` different (gold, source): the golds, then ones changed in one to three places, drawn from a fixed
    seed."""
    draw, golds = Random(f"pairs:{name}"), list(golds)
    found = {gold: gold for gold in golds}
    while len(found) < count:
        gold = source = draw.choice(golds)
        for _ in range(draw.randint(1, 3)):
            live = mutants_of(source, name).live
            source = draw.choice(live).source if live else source
        found.setdefault(source, gold)
    return [(gold, source) for source, gold in found.items()]


def expected(said):
    return f"raises({said[1:]})" if said.startswith("!") else said


async def test_hidden_calls_give_no_false_verdict():
    pairs = [(gold, FUNCTIONS[gold], source) for gold, source in solutions(FUNCTIONS, "f.py", PAIRS * 3 // 4)]
    golds = dict(zip(FUNCTIONS, await by_script(list(FUNCTIONS.items())), strict=True))
    told = await by_script([(source, args) for _, args, source in pairs])
    wrong = []
    async with Forkers(1) as forkers:
        for (gold, args, source), said in zip(pairs, told, strict=True):
            calls = tuple(Call(a, expected(g)) for a, g in zip(args, golds[gold], strict=True))
            grader = FunctionCalls("f", calls=calls, forkers=forkers, call_s=0.15, total_s=20.0)
            score = await grader.grade(task(), left({"solution.py": source}))
            share = sum(a == b for a, b in zip(said, golds[gold], strict=True)) / len(args)
            if score.value != share:
                wrong.append((source, share, score))
    assert not wrong, f"{len(wrong)} of {len(pairs)} verdicts are false, as {wrong[0]}"
    assert len({tuple(said) for said in told}) > len(FUNCTIONS), "the mutants differ from gold"


@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_scores_nothing(name):
    calls = tuple(Call(str(n), str(2 * n)) for n in (1, 3, 5, 7))
    grader = FunctionCalls("f", calls=calls, call_s=0.1, total_s=4.0)
    score = await grader.grade(task(), left({"solution.py": ATTACKS[name]}))
    assert score.value == 0.0, score


PROGRAMS = {
    "python": "def main():\n    n = int(input())\n    total = 0\n    for i in range(1, n + 1):\n"
    "        if i % 3 == 0 or i % 5 == 0:\n            total += i\n    print(total)\n\n\nmain()\n",
    "bash": 'read n\ntotal=0\nfor ((i = 1; i <= n; i++)); do\n  if ((i % 3 == 0 || i % 5 == 0)); then\n'
    '    total=$((total + i))\n  fi\ndone\necho "$total"',
    "c": '#include <stdio.h>\nint main(void) {\n  int n, total = 0;\n  if (scanf("%d", &n) != 1) return 1;\n'
    '  for (int i = 1; i <= n; i++) {\n    if (i % 3 == 0 || i % 5 == 0) total += i;\n  }\n'
    '  printf("%d\\n", total);\n  return 0;\n}\n',
}  # fmt: skip
INPUTS = ("10\n", "1\n", "15\n", "0\n")
ANSWERS = ("33\n", "0\n", "60\n", "0\n")  # 3+5+6+9+10; none; 33+12+15; none
QUICK = Limits(wall_s=5.0, cpu_s=0.5, memory_mib=512, processes=32, output_bytes=1 << 16)


async def by_hand(name, source):
    """The share of right cases when the program is simply run, each time in a new sandbox."""
    used, right = LANGUAGES[name], 0
    for given, answer in zip(INPUTS, ANSWERS, strict=True):
        async with open_sandbox("local", mounts=used.mounts(), limits=QUICK) as box:
            await box.write(used.source, source.encode())
            if used.build and (await box.exec(used.build, limits=BUILD)).exit_code:
                return 0.0
            ran = await box.exec(used.run, stdin=given.encode())
        right += ran.exit_code == 0 and not ran.limits_hit and ran.stdout.rstrip(b"\n") == answer.rstrip("\n").encode()
    return right / len(INPUTS)


async def test_programs_give_no_false_verdict():
    each = PAIRS // 4 // len(PROGRAMS)
    pairs = [
        (name, source)
        for name, gold in PROGRAMS.items()
        for _, source in solutions([gold], LANGUAGES[name].source, each)
    ]
    cases = tuple(Case(given, answer) for given, answer in zip(INPUTS, ANSWERS, strict=True))
    shares = []
    for name, source in pairs:
        share = await by_hand(name, source)
        score = await Stdio(name, cases=cases, limits=QUICK).grade(task(), left({LANGUAGES[name].source: source}))
        assert score.value == share, (name, source, score)
        shares.append(share)
    assert 0.0 < sum(shares) < len(shares), "some are right and some are wrong"
    for name, gold in PROGRAMS.items():
        assert await by_hand(name, gold) == 1.0
