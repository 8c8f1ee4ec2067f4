"""Call one function with many argument lists, and report every result as plain data.

    python -s -S -P worker.py RESULTS < request

The request is one JSON object: ``root`` (the folder to import from), ``module``, ``symbol`` (dotted, within the
module; "" for the module itself), ``args`` (argument lists as source text of literals), ``first`` (index of the first
one), ``nonce``, ``call_s`` (CPU seconds at most for one call), ``import_s`` (seconds for the import), ``iterate``
(items read of an iterator). Every line of RESULTS is ``nonce`` and a JSON object with one of these keys, and is
written before the next thing is tried, so that whatever the called code does to this process, what was finished is
known:

    {"import": seconds}                      the module is imported
    {"i": n, "v": text, "s": CPU seconds, "w": seconds, "it": iterated, "mut": true}    result n; "mut" where an
                                             argument was changed
    {"i": n, "e": text, "s": CPU seconds}    call n raised
    {"i": n, "u": text, "s": CPU seconds}    call n gave something that is not plain data
    {"refused": text, "missing": name}       nothing could be called; "missing" where the import lacks a module
    {"end": {...}}                           all done: effects seen, modules and data files used
"""

from __future__ import annotations

import importlib
import io
import json
import os
import signal
import sys
import time
from itertools import islice
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import literals  # type: ignore[import-not-found]
import watch  # type: ignore[import-not-found]

sys.path.pop(0)


WAIT = 20


class OutOfTime(BaseException):
    """Raised by the alarm. Not an Exception, so that ``except Exception`` in the called code lets it through."""


def alarm(signum: int, frame: object) -> None:
    set_alarms(0)  # the other alarm must not go off where nobody waits for it
    raise OutOfTime


class Channel:
    """The way out: a descriptor of its own, lines that carry the nonce, nothing from any other process."""

    def __init__(self, path: str, nonce: str) -> None:
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._fd, self._pid, self._nonce = os.dup2(opened, 200), os.getpid(), nonce
        os.close(opened)

    def send(self, **line: Any) -> None:
        if os.getpid() != self._pid:
            os._exit(1)  # a child that the called code forked: it must not report
        os.write(self._fd, f"{self._nonce} {json.dumps(line)}\n".encode())


def arguments(text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    names = {"_": lambda *a, **k: (a, k), "nan": float("nan"), "inf": float("inf"), "set": set, "__builtins__": {}}
    # Source text that our own forge wrote, and a sandbox around it.
    given: tuple[tuple[Any, ...], dict[str, Any]] = eval(f"_({text})", names)
    return given


def call(function: Any, text: str, iterate: int) -> dict[str, Any]:
    """The line that reports one call."""
    args, kwargs = arguments(text)
    before = literals.show((args, kwargs))
    start, wall = time.process_time(), time.perf_counter()
    value = function(*args, **kwargs)
    iterated = hasattr(type(value), "__next__")
    if iterated:
        value = list(islice(value, iterate + 1))
        if len(value) > iterate:
            return {"u": f"an iterator of more than {iterate} items"}
    spent = {"s": round(time.process_time() - start, 7), "w": round(time.perf_counter() - wall, 7)}
    line: dict[str, Any] = {"v": literals.show(value), **spent, "it": int(iterated)}
    if literals.show((args, kwargs)) != before:
        line["mut"] = True
    return line


def set_alarms(cpu_s: float) -> None:
    """Out of time after ``cpu_s`` seconds of CPU, so that a busy machine changes no result, or WAIT times as many of
    any kind, for code that waits."""
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    signal.setitimer(signal.ITIMER_REAL, cpu_s * WAIT)


def timed(function: Any, text: str, iterate: int, call_s: float) -> dict[str, Any]:
    try:
        set_alarms(call_s)
        return call(function, text, iterate)
    finally:
        set_alarms(0)


def guarded(function: Any, text: str, iterate: int, call_s: float) -> dict[str, Any]:
    start = time.process_time()
    # Around ``timed``, not inside it: an alarm may go off while the alarms are being taken back.
    try:
        return timed(function, text, iterate, call_s)
    except literals.NotPlain as error:
        line = {"u": str(error)}
    except OutOfTime:
        line = {"e": f"no result within {call_s} s of CPU"}
    except BaseException as error:
        line = {"e": f"{type(error).__name__}"}
    return {**line, "s": round(time.process_time() - start, 7)}


def load(request: dict[str, Any], channel: Channel) -> Any:
    """The function to call, or None after saying why there is none."""
    start = time.perf_counter()
    try:
        signal.setitimer(signal.ITIMER_REAL, request["import_s"])
        found: Any = importlib.import_module(request["module"])
        for part in filter(None, request["symbol"].split(".")):
            found = getattr(found, part)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except OutOfTime:
        return channel.send(refused=f"its import did not end within {request['import_s']} s")
    except SystemExit:
        return channel.send(refused="its import asked the process to exit")
    except ModuleNotFoundError as error:
        return channel.send(refused=f"its import raised ModuleNotFoundError: {error}", missing=error.name)
    except BaseException as error:
        return channel.send(refused=f"its import raised {type(error).__name__}: {str(error)[:200]}")
    if request["args"] and not callable(found):
        return channel.send(refused="its name is not bound to something callable")
    channel.send(**{"import": time.perf_counter() - start})
    return found


def main() -> None:
    request = json.loads(sys.stdin.buffer.read())
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
    channel = Channel(sys.argv[1], request["nonce"])
    sys.dont_write_bytecode = True
    sys.path.append(request["root"])
    signal.signal(signal.SIGALRM, alarm)
    signal.signal(signal.SIGPROF, alarm)
    watcher = watch.Watcher(request["root"])
    function = load(request, channel)
    if function is None:
        os._exit(0)
    watcher.start(request["module"])
    for index, text in enumerate(request["args"], request["first"]):
        watcher.call = index
        channel.send(i=index, **guarded(function, text, request["iterate"], request["call_s"]))
    watcher.call = None
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    channel.send(end=watcher.report())
    os._exit(0)  # no exit handler of the called code runs


if __name__ == "__main__":
    main()
