"""Call one function many times in this process, and say each result as it comes. Runs in a fork of a zygote.

The request is JSON: ``files`` (path -> source text) and ``module`` (the name to import among them), ``symbol`` (dotted,
within the module), ``args`` (argument lists as text), ``first`` (index of the first), ``stop`` (whether a call that is
late is the last), ``classes`` (name -> declared fields), ``call_s`` and ``import_s`` (CPU seconds of one call, of the
import), ``iterate`` and ``most`` (items read of an iterator, characters of a result). Each answer is a frame of JSON:

    ["ready"]   ["refused", words]   ["end"]
    ["value", index, value]   ["raised", index, names]   ["unsuitable", index, words]   ["late", index]

What the graded code finds here is the arguments, and a way to say what it might as well return: expected values are
elsewhere. Whatever it does to ``builtins``, ``json``, ``os`` or ``signal``, this module keeps its own."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import ModuleSpec
from json import loads
from json.encoder import encode_basestring_ascii as quoted
from os import _exit as leave
from os import getpid
from signal import ITIMER_PROF, ITIMER_REAL, SIGALRM, SIGPROF, setitimer, signal
from types import ModuleType
from typing import Any

from wire import NotPlain, Writer  # type: ignore[import-not-found]

__builtins__: Any = dict(vars(builtins))  # type: ignore[no-redef]

NAME = "solution"
WAIT = 20
DEPTH = sys.getrecursionlimit()
Say = Callable[[str], None]
_MRO = type.__dict__["__mro__"]
_QUALNAME = type.__dict__["__qualname__"]
_STANDARD = {kind: name for name, kind in vars(builtins).items() if isinstance(kind, type)}
_set_depth, _set_trace, _set_profile = sys.setrecursionlimit, sys.settrace, sys.setprofile


class OutOfTime(BaseException):
    """Not an Exception, so that ``except Exception`` in the graded code lets it through."""


def alarm(signum: int, frame: object) -> None:
    set_alarms(0)
    raise OutOfTime


def set_alarms(cpu_s: float) -> None:
    setitimer(ITIMER_PROF, cpu_s)
    setitimer(ITIMER_REAL, cpu_s * WAIT)


class Finder:
    """Imports modules from texts: ``files`` maps a path, as ``package/module.py``, to its source."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        base = name.replace(".", "/")
        for place in (f"{base}/__init__.py", f"{base}.py"):
            if place in self.files:
                spec = ModuleSpec(name, self, origin=place, is_package=place.endswith("/__init__.py"))
                spec.has_location = True
                return spec
        if any(place.startswith(f"{base}/") for place in self.files):
            return ModuleSpec(name, None, is_package=True)  # a folder without __init__.py
        return None

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None and module.__spec__.origin is not None
        place = module.__spec__.origin
        module.__dict__["__builtins__"] = builtins  # the shared ones, not those that this module keeps for itself
        exec(compile(self.files[place], place, "exec", dont_inherit=True), module.__dict__)


def run(call: bytes, reply: Callable[[bytes], None]) -> None:
    me = getpid()

    def say(text: str) -> None:
        if getpid() != me:
            leave(1)  # a child that the graded code forked
        reply(text.encode())

    request = loads(call)
    signal(SIGALRM, alarm)
    signal(SIGPROF, alarm)
    function, names = load(request, say)
    if function is not None:
        for index, text in enumerate(request["args"], request["first"]):
            said = guarded(function, text, names, index, request)
            say(said)
            if request["stop"] and said.startswith('["late"'):
                leave(0)
            _set_trace(None)
            _set_profile(None)
            _set_depth(DEPTH)
        say('["end"]')
    leave(0)  # no exit handler of the graded code runs


def load(request: dict[str, Any], say: Say) -> tuple[Any, dict[str, Any]]:
    """The function, and the names that arguments may use; (None, {}) after saying why there is none."""
    sys.meta_path.append(Finder(request["files"]))  # last: no file of the graded code stands in for a module of ours
    words, module = "", ModuleType(NAME)
    try:
        set_alarms(request["import_s"])
        module = import_module(request["module"])
        found: Any = module
        for part in request["symbol"].split("."):
            found = getattr(found, part)
        if not callable(found):
            words = "its name is not bound to something callable"
    except OutOfTime:
        words = f"its import took more than {request['import_s']} s"
    except BaseException as error:
        words = f"its import raised {raised(error)[0]}"
    set_alarms(0)
    if words:
        say(f'["refused",{quoted(words)}]')
        return None, {}
    say('["ready"]')
    numpy = sys.modules.get("numpy")
    names: dict[str, Any] = {"nan": float("nan"), "inf": float("inf"), "array": getattr(numpy, "array", None)}
    names |= {kind: module.__dict__.get(kind) for kind in request["classes"]}
    names |= {kind.__name__: kind for kind in (set, frozenset, complex, iter, range)}
    return found, {**names, "_": lambda *args, **kwargs: (args, kwargs), "__builtins__": {}}


def guarded(function: Any, text: str, names: dict[str, Any], index: int, request: dict[str, Any]) -> str:
    """The answer about one call. Around ``timed``: an alarm may go off while the alarms are being taken back."""
    try:
        return f'["value",{index},{timed(function, text, names, request)}]'
    except OutOfTime:
        return f'["late",{index}]'
    except NotPlain as error:
        return f'["unsuitable",{index},{quoted(str(error)[:200])}]'
    except BaseException as error:
        return f'["raised",{index},[{",".join([quoted(name) for name in raised(error)])}]]'


def timed(function: Any, text: str, names: dict[str, Any], request: dict[str, Any]) -> str:
    args, kwargs = eval(f"_({text})", dict(names))
    writer = Writer(request["classes"], request["most"], request["iterate"])
    try:
        set_alarms(request["call_s"])
        said: str = writer.text(function(*args, **kwargs))
        return said
    finally:
        set_alarms(0)


def raised(error: BaseException) -> list[str]:
    """The names of the class of ``error`` and its bases. One of ours that only has the name of a standard exception
    is led by its module, so that it is not taken for it."""
    kinds = [kind for kind in _MRO.__get__(type(error)) if kind is not object]
    return [_STANDARD.get(kind) or _own_name(kind) for kind in kinds]


def _own_name(kind: type) -> str:
    name = str(_QUALNAME.__get__(kind))[:200]
    return f"{NAME}.{name}" if name in vars(builtins) else name


sys.path[:] = [path for path in sys.path if path != __file__.rpartition("/")[0]]
