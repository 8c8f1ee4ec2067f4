"""How a program in one file is built and run, by language. The next language is a line in LANGUAGES."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from palestra.errors import GraderError, nearest
from palestra.sandboxes.base import Limits, Mount
from palestra.verify.visible import python_view

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
"""Where a sandbox finds programs: what lies elsewhere on this machine is not shown in it."""


@dataclass(frozen=True, slots=True)
class Language:
    """source       the file that a program is written to
    build        makes what ``run`` starts, where something must be built
    address_mib  address space without which its interpreter does not start, MiB; most of it is never touched
    """

    name: str
    source: str
    run: tuple[str, ...]
    build: tuple[str, ...] = ()
    address_mib: int = 0

    @property
    def tools(self) -> tuple[str, ...]:
        """The programs of this machine that it needs."""
        return tuple(dict.fromkeys(argv[0] for argv in (self.build, self.run) if argv and argv[0] != "./main"))

    def missing(self) -> str | None:
        """The tool that a sandbox would not find; None when all are there."""
        return next((tool for tool in self.tools if shutil.which(tool, path=SYSTEM_PATH) is None), None)

    def mounts(self) -> list[Mount]:
        """What a sandbox must be shown of this machine beside its system programs."""
        if self.name == "java":  # Debian keeps a part of the runtime there
            return [Mount(folder, folder) for folder in Path("/etc").glob("java-*")]
        return python_view() if self.name == "python" else []

    def bounded(self, limits: Limits) -> Limits:
        """``limits`` with the address space that it needs at least."""
        memory = limits.memory_mib
        return limits if memory is None else replace(limits, memory_mib=max(memory, self.address_mib))

    def require(self) -> None:
        """Raises GraderError where a tool is missing."""
        tool = None if self.name == "python" else self.missing()
        if tool is not None:
            raise GraderError(f"language {self.name} needs {tool}, which is not in {SYSTEM_PATH}; install it there")


# A case is short: no second compiler, and a small heap.
_JAVA = ("-Xmx512m", "-Xss64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_TABLE = (
    Language("python", "main.py", (sys.executable, "-I", "main.py")),
    Language("c", "main.c", ("./main",), ("gcc", "-O2", "-std=c17", "-o", "main", "main.c", "-lm")),
    Language("cpp", "main.cpp", ("./main",), ("g++", "-O2", "-std=c++17", "-o", "main", "main.cpp")),
    Language("rust", "main.rs", ("./main",), ("rustc", "-O", "-o", "main", "main.rs")),
    Language("go", "main.go", ("./main",), ("go", "build", "-o", "main", "main.go")),
    Language("java", "Main.java", ("java", *_JAVA, "Main"), ("javac", "-J-Xmx512m", "Main.java"), 4096),
    Language("javascript", "main.js", ("node", "--max-old-space-size=512", "main.js"), address_mib=2048),
    Language("perl", "main.pl", ("perl", "main.pl")),
    Language("bash", "main.sh", ("bash", "main.sh")),
    Language("lua", "main.lua", ("lua", "main.lua")),
    Language("ruby", "main.rb", ("ruby", "main.rb")),
    Language("php", "main.php", ("php", "main.php")),
    Language("r", "main.R", ("Rscript", "--vanilla", "main.R")),
)
LANGUAGES = {language.name: language for language in _TABLE}


def language(name: str) -> Language:
    """Raises GraderError for an unknown name."""
    if name not in LANGUAGES:
        raise GraderError(f"language {name!r} is unknown, {nearest(name, LANGUAGES)}")
    return LANGUAGES[name]
