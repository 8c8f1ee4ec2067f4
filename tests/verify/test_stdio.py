"""The grader of programs: each language that is here, each way to end, and no way to see an answer."""

import re
import textwrap

import pytest

from palestra.sandboxes import Limits
from palestra.types import Unscored
from palestra.verify.languages import LANGUAGES, Language, language
from palestra.verify.outputs import Checker, Floats, Tokens
from palestra.verify.stdio import LIMITS, Case, Stdio
from tests.verify.grading import left, scored, task

SUMS = (Case("1 2\n", "3\n"), Case("40 2\n", "42\n"), Case("-5 5\n", "0\n"))
PROGRAMS = {
    "python": "print(sum(map(int, input().split())))",
    "c": '#include <stdio.h>\nint main() { int a, b; scanf("%d %d", &a, &b); printf("%d\\n", a + b); return 0; }',
    "cpp": "#include <iostream>\nint main() { int a, b; std::cin >> a >> b; std::cout << a + b; }",
    "rust": """use std::io::*; fn main() { let mut s = String::new(); stdin().read_to_string(&mut s).unwrap();
        println!("{}", s.split_whitespace().map(|x| x.parse::<i64>().unwrap()).sum::<i64>()); }""",
    "go": 'package main\nimport "fmt"\nfunc main() { var a, b int; fmt.Scan(&a, &b); fmt.Println(a + b) }',
    "java": """import java.util.*; public class Main { public static void main(String[] args) {
        Scanner s = new Scanner(System.in); System.out.println(s.nextInt() + s.nextInt()); } }""",
    "javascript": "const w = require('fs').readFileSync(0, 'utf8').split(/\\s+/).map(Number); console.log(w[0] + w[1])",
    "perl": "my ($a, $b) = split ' ', <STDIN>; print $a + $b, \"\\n\";",
    "bash": "read a b; echo $((a + b))",
    "lua": "local a, b = io.read('n', 'n'); print(a + b)",
    "ruby": "puts gets.split.map(&:to_i).sum",
    "php": "<?php echo array_sum(explode(' ', trim(fgets(STDIN)))), \"\\n\";",
    "r": "cat(sum(scan(file('stdin'), quiet = TRUE)), '\\n')",
}


def test_every_language_is_tested():
    assert set(PROGRAMS) == set(LANGUAGES)


@pytest.mark.parametrize("name", LANGUAGES)
async def test_a_right_program_and_a_wrong_one(name):
    used = LANGUAGES[name]
    if name != "python" and used.missing():
        pytest.skip(f"{used.missing()} is not installed")
    score = await scored(Stdio(name, cases=SUMS, compare=Tokens()), {used.source: PROGRAMS[name]})
    assert (score.value, score.components["built"]) == (1.0, 1.0)
    other = (Case("1 2\n", "3\n"), Case("1 2\n", "4\n"))
    score = await scored(Stdio(name, cases=other, compare=Tokens()), {used.source: PROGRAMS[name]})
    assert score.value == 0.5 and score.evidence == "1 of 2 cases are right; gave another output: 1"


async def python(source, cases=SUMS, **settings):
    limits = Limits(wall_s=2.0, cpu_s=1.0, memory_mib=512, processes=32, file_mib=8, output_bytes=1 << 16)
    grader = Stdio("python", cases=cases, **{"limits": limits, **settings})
    return await scored(grader, {"main.py": textwrap.dedent(source)})


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("print(sum(map(int, input().split()))); raise SystemExit(3)", "exited with 3: 0, 1, 2"),
        ("print(sum(map(int, input().split()))); 1 / 0", "exited with 1: 0, 1, 2"),
        ("import os; os.abort()", "was killed by signal 6"),
        ("x = bytearray(1 << 30)", "exited with 1|limit of memory_mib"),
        ("print(int(input().split()[0]) + 2)", "gave another output: 2"),
        ("import sys; print(3, file=sys.stderr)", "gave another output: 0, 1, 2"),
        ("", "gave another output: 0, 1, 2"),
        ("import inflection", "exited with 1"),
    ],
)
async def test_what_is_wrong_is_told(source, told):
    score = await python(source)
    assert score.value < 1.0 and re.search(told, score.evidence), score.evidence


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("while True: pass", "ran out of time|limit of cpu_s"),
        ("import time; time.sleep(60)", "ran out of time"),
        ("while True: print('x' * 1000)", "printed too much|ran out of time"),
    ],
)
async def test_what_does_not_end_is_ended(source, told):
    score = await python(source, SUMS[:1])
    assert score.value == 0.0 and re.search(told, score.evidence), score.evidence


async def test_what_a_program_leaves_running_does_not_hold_its_case():
    source = """
    import os, sys
    print(sum(map(int, input().split())), flush=True)
    if os.fork() == 0:
        os.setsid()
        import time; time.sleep(60)
    """
    assert (await python(source)).value == 1.0


async def test_what_one_case_leaves_the_next_does_not_see():
    source = """
    import os
    for place in (".", "/tmp", "/dev/shm"):
        if os.path.exists(place + "/seen"): print("seen before")
        try: open(place + "/seen", "w")
        except OSError: pass
    open("main.py", "w").write("print('replaced')")
    print(sum(map(int, input().split())))
    """
    assert (await python(source)).value == 1.0


async def test_no_expected_output_is_anywhere_in_the_sandbox():
    source = """
    import os, sys
    found = []
    for root, folders, names in os.walk("/"):
        folders[:] = [f for f in folders if os.path.join(root, f) not in ("/usr", "/proc", "/sys", "/dev", "/root")]
        for name in names:
            try: data = open(os.path.join(root, name), "rb").read(1 << 20)
            except OSError: continue
            if b"the-expected" + b"-output" in data: found.append(name)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for what in ("environ", "cmdline"):
            if b"the-expected" + b"-output" in open(f"/proc/{pid}/{what}", "rb").read(): found.append(what)
    print("found" if found else "nothing", *found)
    """
    cases = (Case("", "the-expected-output"), Case("", "nothing\n"))
    score = await python(source, cases, limits=LIMITS)
    assert score.evidence == "1 of 2 cases are right; gave another output: 0"


async def test_all_or_nothing_stops_at_the_first_failure():
    score = await python("print(3)", credit="all")
    assert (score.value, score.evidence) == (0.0, "case 1 gave another output")
    score = await python("print(sum(map(int, input().split())))", credit="all")
    assert (score.value, score.evidence) == (1.0, "every case is right")


async def test_time_for_all_together_is_bounded():
    score = await python("import time; time.sleep(1); print(3)", total_s=0.5)
    assert score.evidence == "1 of 3 cases are right; was not reached in time: 1, 2"


async def test_arguments_checkers_and_tolerances():
    source = "import sys; print(*sys.argv[1:], input())"
    cases = (Case("in", "b a in", ("a", "b")),)
    check = (
        "import sys; a, b = (sorted(open(n).read().split()) for n in sys.argv[2:]); print(['wrong', 'right'][a == b])"
    )
    assert (await python(source, cases, compare=Checker(check))).value == 1.0
    assert (await python(source, cases)).value == 0.0
    assert (await python("print(2 / 3)", (Case("", "0.666667"),), compare=Floats())).value == 1.0


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, "there is no main.c"),
        ({"main.c": "int main( {"}, "it does not build: main.c"),
        ({"main.c": '#include "/etc/passwd"\nint main() { return 0; }'}, "it does not build"),
        ({"main.c": '#include "/dev/zero"'}, "build ran out of time|does not build"),
    ],
)
async def test_what_does_not_build_scores_nothing(files, told):
    build = Limits(wall_s=5.0, cpu_s=3.0, memory_mib=512)
    score = await scored(Stdio("c", cases=SUMS, build=build), files)
    assert (score.value, score.components["built"]) == (0.0, 0.0) and re.search(told, score.evidence)


@pytest.mark.parametrize(
    ("grader", "facts", "told"),
    [
        (Stdio("python"), {}, "no hidden cases under 'cases'"),
        (Stdio("python"), {"cases": []}, "no hidden cases"),
        (Stdio("python"), {"cases": [{"stdin": "1"}]}, "must be"),
        (Stdio("python"), {"cases": [{"stdin": "1", "stdout": "1", "args": [1]}]}, "must be"),
        (Stdio("pyton", cases=SUMS), {}, "did you mean python?"),
        (Stdio("python", cases=SUMS, compare=Checker("raise SystemExit(9)")), {}, "the checker must print"),
    ],
)
async def test_what_the_grader_cannot_do_is_unscored(grader, facts, told):
    found = await grader.grade(task(facts), left({"main.py": "print(3)"}))
    assert isinstance(found, Unscored) and told in found.reason


async def test_cases_of_the_task():
    facts = {"cases": [{"stdin": "1 2", "stdout": "3"}, {"stdin": "1 2", "stdout": "4", "args": ["x"]}]}
    assert (await scored(Stdio("python"), {"main.py": PROGRAMS["python"]}, facts)).value == 0.5


def test_a_missing_compiler_is_named():
    from palestra.errors import GraderError

    with pytest.raises(GraderError, match="needs no-such-compiler"):
        Language("odd", "main.odd", ("./main",), ("no-such-compiler", "main.odd")).require()
    assert language("c").tools == ("gcc",)


async def test_a_case_has_the_variables_it_is_given():
    grader = Stdio("python", cases=(Case("", "JST"),), env={"TZ": "JST-9"})
    assert (await scored(grader, {"main.py": "import time; print(time.tzname[0])"})).value == 1.0
