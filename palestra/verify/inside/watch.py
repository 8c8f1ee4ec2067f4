"""See what called code does besides returning: files, processes, network, settings of the process, state of modules.

Standard library only; runs beside ``worker`` inside a sandbox. An audit hook notes events, it does not stop them: the
sandbox is what stops them."""

from __future__ import annotations

import locale
import os
import random
import sys
from types import ModuleType
from typing import Any

import literals  # type: ignore[import-not-found]

FORBIDDEN = (
    "socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.remove",
    "os.rename", "os.mkdir", "os.rmdir", "os.chmod", "os.chown", "os.link", "os.symlink", "os.truncate", "os.utime",
    "os.chdir", "os.fchdir", "os.putenv", "os.unsetenv", "os.kill", "os.listdir", "os.scandir", "shutil.", "tempfile.",
    "ctypes.dlopen", "signal.pthread_kill", "sqlite3.connect", "urllib.Request", "ftplib.", "smtplib.", "fcntl.",
)  # fmt: skip
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
MOST_EFFECTS = 20


class Watcher:
    """``call`` is the index of the call being made, or None between calls; effects are counted from construction on:
    those of the import carry the call "import"."""

    def __init__(self, root: str) -> None:
        self.call: int | str | None = "import"
        self.effects: list[list[Any]] = []
        self.data_files: set[str] = set()
        self._root = os.path.realpath(root)
        self._readable = (self._root, *{os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, *sys.path)})
        sys.addaudithook(self._hook)

    def start(self, module: str) -> None:
        self.call = None
        self._package = module.partition(".")[0]
        self._before = self._state()

    def report(self) -> dict[str, Any]:
        after = self._state()
        changed = [name for name in after if self._before.get(name, after[name]) != after[name]]
        modules = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        return {
            "effects": self.effects[:MOST_EFFECTS],
            "state": changed[:MOST_EFFECTS],
            "modules": sorted({self._inside(path) for path in modules if path and self._inside(path)}),
            "data": sorted(self.data_files),
        }

    def _inside(self, path: str) -> str:
        real = os.path.realpath(path)
        return os.path.relpath(real, self._root) if real.startswith(self._root + os.sep) else ""

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if self.call is None:
            return
        if event == "open":
            self._opened(*args)
        elif event.startswith(FORBIDDEN):
            # Importing looks into folders; that is not the code's own doing.
            if not (event in ("os.listdir", "os.scandir") and self._is_own(args[0])):
                self._note(event, args[0] if args else "")

    def _opened(self, path: Any, mode: Any, flags: Any) -> None:
        if isinstance(path, int):
            return
        name = os.path.realpath(os.fsdecode(path))
        if (isinstance(flags, int) and flags & WRITING) or (isinstance(mode, str) and set(mode) & set("wax+")):
            self._note("open for writing", name)
        elif not self._is_own(name):
            self._note("open", name)
        elif self._inside(name) and not name.endswith((".py", ".pyc")):
            self.data_files.add(self._inside(name))

    def _is_own(self, path: Any) -> bool:
        name = os.path.realpath(os.fsdecode(path)) if path is not None and not isinstance(path, int) else ""
        return any(name == folder or name.startswith(folder + os.sep) for folder in self._readable)

    def _note(self, event: str, detail: Any) -> None:
        if len(self.effects) < MOST_EFFECTS:
            self.effects.append([self.call, event, str(detail)[:200]])

    def _state(self) -> dict[str, str]:
        """Everything outside the arguments that a call could change, as name -> fingerprint."""
        state = {
            "os.environ": repr(sorted(os.environ.items())),
            "working folder": os.getcwd(),
            "random state": str(hash(random.getstate())),
            "locale": str(locale.setlocale(locale.LC_ALL)),
            "sys.path": repr(sys.path),
            "recursion limit": str(sys.getrecursionlimit()),
        }
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == self._package and isinstance(module, ModuleType):
                for key, value in list(vars(module).items()):
                    if not key.startswith("__"):
                        state[f"{name}.{key}"] = fingerprint(value)
        return state


def fingerprint(value: Any) -> str:
    """Changes when plain data changes; containers of other things by their length and members' identity."""
    try:
        return str(literals.show(value))
    except literals.NotPlain:
        pass  # not plain: the weaker fingerprint below
    if isinstance(value, dict):
        return f"dict {[(id(key), id(item)) for key, item in value.items()]}"
    if isinstance(value, (list, tuple)):
        return f"sequence {[id(item) for item in value]}"
    return f"object {id(value)}"
