"""What the token mutators must know of a language that is not Python: how it writes texts and comments, and which
operator becomes which. Tables, not parsers: a mutant may fail to compile, and then kills itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Table = Mapping[str, str]


def _both(pairs: Mapping[str, str]) -> dict[str, str]:
    return dict(pairs) | {new: old for old, new in pairs.items()}


@dataclass(frozen=True, slots=True)
class Language:
    """comments    patterns of a comment
    texts       patterns of a quoted text
    swaps       operator family -> token -> what it becomes; a token of letters must stand as a whole word
    spaced      tokens that are an operator only with blanks around them (``<`` of ``a < b``, not of ``vector<int>``)
    ends        what ends a statement that stands on a line of its own; "" where the end of the line does
    nothing     the statement that does nothing
    skipped     pattern of a line that is never changed
    regexes     whether ``/…/`` can be a literal
    """

    comments: tuple[str, ...]
    texts: tuple[str, ...]
    swaps: Mapping[str, Table]
    spaced: frozenset[str]
    ends: str
    nothing: str
    skipped: str = ""
    regexes: bool = False


_QUOTED = (r'"(?:\\.|[^"\\\n])*"', r"'(?:\\.|[^'\\\n])*'")
_FLOW = {"break": "continue", "continue": "break"}
_C_SWAPS: dict[str, Table] = {
    "arithmetic": {
        "+": "-", "-": "+", "*": "+", "/": "*", "%": "*", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "&",
        "+=": "-=", "-=": "+=", "*=": "+=", "/=": "*=", "++": "--", "--": "++",
    },
    "comparison": {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "===": "!==", "!==": "==="},
    "boundary": {"<": "<=", "<=": "<", ">": ">=", ">=": ">"},
    "boolean": _both({"&&": "||"}),
    "constant": _both({"true": "false"}),
    "loop": _FLOW,
}  # fmt: skip
_SPACED = frozenset({"<", ">", "*", "&", "-", "+", "/", "%", "|", "^", "<<", ">>"})

C_LIKE = Language(
    comments=(r"//[^\n]*", r"/\*.*?\*/"),
    texts=_QUOTED,
    swaps=_C_SWAPS,
    spaced=_SPACED,
    ends=";",
    nothing=";",
    skipped=r"\s*(#|import\b|package\b|using\b|use\b|include\b)",
)
JAVASCRIPT = Language(
    comments=C_LIKE.comments,
    texts=(*_QUOTED, r"`(?:\\.|[^`\\])*`"),
    swaps=_C_SWAPS,
    spaced=_SPACED,
    ends=";",
    nothing=";",
    skipped=r"\s*(import\b|export\s+(\*|\{)|#!|.*\brequire\()",
    regexes=True,
)
SHELL = Language(
    comments=(r"(?<![\S])#[^\n]*",),
    texts=(r'"(?:\\.|[^"\\])*"', r"'[^']*'"),
    swaps={
        "comparison": _both({"-eq": "-ne", "-lt": "-ge", "-gt": "-le", "=": "!=", "-z": "-n"}) | {"==": "!="},
        "boundary": _both({"-lt": "-le", "-gt": "-ge"}),
        "boolean": _both({"&&": "||"}),
        "constant": _both({"true": "false"}),
        "arithmetic": {"+": "-", "-": "+", "*": "+", "/": "*", "%": "*"},
        "loop": _FLOW,
    },
    spaced=frozenset({"+", "-", "*", "/", "%", "=", "!=", "==", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-z", "-n"}),
    ends="",
    nothing=":",
    skipped=r"\s*(#|(then|else|fi|do|done|esac|case|if|elif|for|while|until|function)\b|[{}]|.*[{(\\]$|.*<<)|\s*$",
)

LANGUAGES: dict[str, Language] = {
    **dict.fromkeys(("c", "cpp", "java", "rust", "go", "csharp", "kotlin", "swift", "php", "dart"), C_LIKE),
    **dict.fromkeys(("javascript", "typescript"), JAVASCRIPT),
    **dict.fromkeys(("shell", "bash", "sh"), SHELL),
}
SUFFIXES: dict[str, str] = {
    "c": "c", "h": "c", "cc": "cpp", "cpp": "cpp", "cxx": "cpp", "hpp": "cpp", "java": "java", "rs": "rust", "go": "go",
    "cs": "csharp", "kt": "kotlin", "swift": "swift", "php": "php", "dart": "dart", "js": "javascript",
    "mjs": "javascript", "cjs": "javascript", "ts": "typescript", "sh": "shell", "bash": "bash", "py": "python",
}  # fmt: skip
"""The language of a file, by the end of its name."""
