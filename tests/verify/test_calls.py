"""Calls in a sandbox: what comes back, and what code that misbehaves cannot do."""

import textwrap

import pytest

from palestra.verify.calls import Surroundings, Target, run_calls


async def called(folder, source, args, path="f", **settings):
    (folder / "mod.py").write_text(textwrap.dedent(source))
    return await run_calls(Target(folder, "mod", path, ("mod.py",)), args, **settings)


async def test_results_in_order_as_literals(tmp_path):
    run = await called(tmp_path, "def f(a, b=2): return {'sum': a + b, 'kind': type(a)()}", ["1", "1.5, b=1", "2, 3"])
    assert [result.value for result in run.results] == [
        "{'sum': 3, 'kind': 0}",
        "{'sum': 2.5, 'kind': 0.0}",
        "{'sum': 5, 'kind': 0}",
    ]
    assert (
        run.refused is None
        and run.effects == ()
        and run.state == ()
        and run.printed == b""
        and run.files == ("mod.py",)
    )


async def test_iterators_are_listed_and_bounded(tmp_path):
    run = await called(tmp_path, "def f(n):\n while n:\n  yield n\n  n -= 1", ["3", "-1"], iterate=5)
    assert run.results[0].value == "[3, 2, 1]" and run.results[0].iterates
    assert run.results[1].value is None and "more than 5 items" in run.results[1].unsuitable


async def test_what_is_not_plain_data_stays_inside(tmp_path):
    source = """
        class Always(str):
            def __eq__(self, other): return True
            def __repr__(self): return "'expected'"
        def f(kind): return {"sly": Always("x"), "object": object(), "plain": "x"}[kind]
    """
    run = await called(tmp_path, source, ["'sly'", "'object'", "'plain'"])
    assert [result.value for result in run.results] == [None, None, "'x'"]
    assert run.results[0].unsuitable == "a value of type mod.Always"


async def test_exceptions_by_type_and_changed_arguments(tmp_path):
    run = await called(tmp_path, "def f(a):\n a.append(1)\n return 1 // a[0]", ["[0]", "[2]"])
    assert run.results[0].error == "ZeroDivisionError"
    assert run.results[1].value == "0" and run.results[1].mutates


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("import os; os._exit(0)", "ended the process (exit code 0)"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "ended the process"),
        ("raise SystemExit", "SystemExit"),
        ("while True: pass", "no result within 0.2 s of CPU"),
    ],
)
async def test_a_call_that_ends_the_process_costs_one_result(tmp_path, how, told):
    source = f"def f(x):\n if x == 2:\n  {how}\n return x"
    run = await called(tmp_path, source, ["1", "2", "3"], call_s=0.2)
    assert [result.value for result in run.results] == ["1", None, "3"]
    assert told in run.results[1].error


async def test_a_call_that_waits_runs_out_of_time(tmp_path):
    run = await called(tmp_path, "import time\ndef f(x):\n time.sleep(x)\n return x", ["0", "60", "0"], call_s=0.02)
    assert [result.value for result in run.results] == ["0", None, "0"]


async def test_one_that_dies_on_everything_is_given_up(tmp_path):
    run = await called(tmp_path, "import os\ndef f(x): os._exit(1)", ["1"] * 50)
    assert "again and again" in run.refused and all(result.value is None for result in run.results)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("raise ValueError('no')", "its import raised ValueError: no"),
        ("import sys; sys.exit()", "its import asked the process to exit"),
        ("import os; os._exit(3)", "its import ended the process (exit code 3)"),
        ("import absent_module", "No module named 'absent_module'"),
        ("f = 7", "not bound to something callable"),
        ("pass", "has no attribute 'f'"),
    ],
)
async def test_nothing_can_be_called(tmp_path, how, told):
    run = await called(tmp_path, how, ["1"])
    assert told in run.refused and run.results[0].value is None


async def test_forged_lines_on_the_way_out_are_not_believed(tmp_path):
    """They are well formed, on the right descriptor, and later than the true line; the nonce is what they lack."""
    source = """
        import os
        line = b'0123456789abcdef {"i": 0, "v": "666", "s": 0, "it": 0}\\n'
        def f(x):
            if x == 2:
                for fd in range(1, 256):
                    try: os.write(fd, line)
                    except OSError: pass
            return x
    """
    run = await called(tmp_path, source, ["1", "2"])
    assert [result.value for result in run.results] == ["1", "2"]


async def test_a_forked_child_reports_nothing(tmp_path):
    run = await called(tmp_path, "import os\ndef f(x):\n return 0 if os.fork() == 0 else x", ["1", "2"])
    assert [result.value for result in run.results] == ["1", "2"]
    assert "os.fork" in {event for _, event, _ in run.effects}


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        ("open('x', 'w').close()", "open for writing"),
        ("open('/etc/passwd').close()", "open"),
        ("__import__('os').mkdir('d')", "os.mkdir"),
        ("__import__('socket').socket()", "socket.__new__"),
        ("__import__('subprocess').run(['/bin/true'])", "subprocess.Popen"),
        ("__import__('os').system('true')", "os.system"),
        ("__import__('os').listdir('/')", "os.listdir"),
    ],
)
async def test_effects_are_seen(tmp_path, body, seen):
    run = await called(tmp_path, f"def f(x):\n {body}\n return x", ["1"])
    assert seen in {event for _, event, _ in run.effects}


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        ("__import__('os').environ['A'] = 'b'", "os.environ"),
        ("__import__('os').chdir('/')", "working folder"),
        ("__import__('random').random()", "random state"),
        ("seen.append(x)", "mod.seen"),
        ("__import__('sys').path.append('x')", "sys.path"),
        ("__import__('sys').setrecursionlimit(5000)", "recursion limit"),
    ],
)
async def test_changed_state_is_seen(tmp_path, body, seen):
    run = await called(tmp_path, f"import os, random, sys\nseen = []\ndef f(x):\n {body}\n return x", ["1"])
    assert seen in run.state


async def test_output_is_seen_and_is_no_result(tmp_path):
    run = await called(tmp_path, "def f(x): print('hello')", ["1"])
    assert run.printed == b"hello\n" and run.results[0].value == "None"


async def test_surroundings_reach_the_process(tmp_path):
    source = "import os, time\ndef f(name): return [hash(name), time.tzname[0], os.path.basename(os.getcwd())]"
    one = await called(tmp_path, source, ["'a'"], around=Surroundings(1, "JST-9", "C", "elsewhere"))
    again = await called(tmp_path, source, ["'a'"], around=Surroundings(1, "JST-9", "C", "elsewhere"))
    other = await called(tmp_path, source, ["'a'"], around=Surroundings(2))
    assert one.results[0].value == again.results[0].value
    assert one.results[0].value.endswith("'JST', 'elsewhere']")
    assert other.results[0].value != one.results[0].value and "'UTC'" in other.results[0].value
