"""Mutants of a source in another language than Python, by its tokens alone: text in, text out, nothing is run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from palestra.errors import BundleError, nearest
from palestra.gate.mutants.languages import LANGUAGES, Language
from palestra.gate.mutants.mutant import Mutant, Mutants, make, sample
from palestra.gate.mutants.python import LONGEST


@dataclass(frozen=True, slots=True)
class Token:
    """kind is "comment", "text", "regex", "number", "word", "operator" or "blank"."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Change:
    operator: str
    start: int
    end: int
    text: str


def token_mutants(
    source: str, language: str, *, limit: int | None = None, seed: int = 0, name: str = "solution"
) -> Mutants:
    """Every mutant of ``source``; ``limit``, ``seed`` and ``name`` as for Python.

    Raises BundleError where the language is unknown or the file is larger than LONGEST."""
    if language not in LANGUAGES:
        raise BundleError(f"{name}: language {language!r}: unknown, {nearest(language, LANGUAGES)}")
    if len(source) > LONGEST:
        raise BundleError(f"{name}: has {len(source)} characters, at most {LONGEST} are mutated: split the file")
    rules = LANGUAGES[language]
    tokens = tokenise(source, rules)
    live: list[Mutant] = []
    seen = {source}
    for change in sorted(_changes(source, tokens, rules), key=lambda c: (c.start, c.operator, c.text)):
        after = source[: change.start] + change.text + source[change.end :]
        if after not in seen:
            seen.add(after)
            live.append(make(source, after, change.operator, source.count("\n", 0, change.start) + 1, name))
    return Mutants(sample(live, limit, seed), (), len(live))


def tokenise(source: str, rules: Language) -> list[Token]:
    """Every character of ``source`` in one token."""
    operators = {token for table in rules.swaps.values() for token in table if not token[-1].isalpha()}
    # An option as -eq is one word of the shell.
    options = {token for table in rules.swaps.values() for token in table if token[0] == "-" and token[-1].isalpha()}
    longest = sorted(operators | {"->", "=>", "::", ">>=", "<<=", "**", "<="}, key=len, reverse=True)
    kinds = (
        ("comment", "|".join(rules.comments)),
        ("text", "|".join(rules.texts)),
        ("number", r"\b\d[\w.]*"),
        ("option", "|".join(rf"(?<![\w-]){re.escape(option)}\b" for option in sorted(options)) or r"(?!)"),
        ("word", r"[^\W\d]\w*"),
        ("operator", "|".join(map(re.escape, longest)) + r"|[^\w\s]"),
        ("blank", r"\s+|."),
    )
    pattern = re.compile("|".join(f"(?P<{kind}>{shape})" for kind, shape in kinds), re.DOTALL)
    tokens: list[Token] = []
    place = 0
    while place < len(source):
        token = _regex(source, place, tokens) if rules.regexes else None
        if token is None:
            found = pattern.match(source, place)
            assert found is not None and found.lastgroup is not None
            token = Token(found.lastgroup, found.group(), place)
        tokens.append(token)
        place = token.end
    return tokens


_REGEX = re.compile(r"/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*")


def _regex(source: str, place: int, before: Sequence[Token]) -> Token | None:
    """A regular expression literal, where a value can stand: behind an operator or a keyword, not behind a value."""
    if source[place] != "/":
        return None
    last = next((token for token in reversed(before) if token.kind not in ("blank", "comment")), None)
    ends_value = last is not None and (
        last.kind in ("number", "text", "regex")
        or (last.kind == "word" and last.text not in ("return", "typeof", "case", "in", "of", "do", "else"))
        or last.text in (")", "]", "}")
    )
    found = None if ends_value else _REGEX.match(source, place)
    return Token("regex", found.group(), place) if found else None


def _changes(source: str, tokens: Sequence[Token], rules: Language) -> Iterator[Change]:
    closed = _skipped(source, rules)
    for place, token in enumerate(tokens):
        if not any(start <= token.start < end for start, end in closed):
            yield from _of_token(tokens, place, rules)
    for statement in _statements(source, tokens, rules):
        if not any(start <= statement.start < end for start, end in closed):
            yield statement
    yield from _swapped(source, tokens, closed)


def _of_token(tokens: Sequence[Token], place: int, rules: Language) -> Iterator[Change]:
    token = tokens[place]
    if token.kind == "number" and token.text.isdigit() and (token.text == "0" or token.text[0] != "0"):
        for value in (int(token.text) + 1, int(token.text) - 1):
            if value >= 0 and not _redirects(tokens, place, rules):
                yield Change("constant", token.start, token.end, str(value))
    elif token.kind == "text" and len(token.text) > 2 and token.text[0] in '"`':
        yield Change("constant", token.start, token.end, token.text[0] * 2)
    elif token.kind in ("word", "operator", "option") and (
        token.text not in rules.spaced or (_blank(tokens, place - 1) and _blank(tokens, place + 1))
    ):
        for operator, table in rules.swaps.items():
            if token.text in table:
                yield Change(operator, token.start, token.end, table[token.text])


def _redirects(tokens: Sequence[Token], place: int, rules: Language) -> bool:
    """Whether a number of the shell names a stream, as in ``2>&1``."""
    around = {tokens[n].text[0] for n in (place - 1, place + 1) if 0 <= n < len(tokens)}
    return not rules.ends and bool(around & {"<", ">", "&"})


def _blank(tokens: Sequence[Token], place: int) -> bool:
    return 0 <= place < len(tokens) and tokens[place].kind == "blank"


_DECLARES = re.compile(
    r"\s*(?:(?:const|let|var|final|static|auto|int|long|double|float|char|bool|unsigned|size_t|void|struct|class"
    r"|typedef|return|case|default|goto|local|export|readonly|source|set|cd)\b"
    r"|[\w:<>,\[\]*& ]+\s[\w*&]+\s*(?:=[^=]|\[|;))"
)


def _statements(source: str, tokens: Sequence[Token], rules: Language) -> Iterator[Change]:
    """Each statement that stands whole on one line of its own, left out; a declaration is needed below, so it stays."""
    inner = {line for token in tokens if token.kind in ("text", "comment") for line in _inner_lines(source, token)}
    start = 0
    for number, line in enumerate(source.split("\n")):
        if number not in inner and _whole(line, rules) and not _DECLARES.match(line):
            yield Change("deletion", start + len(line) - len(line.lstrip()), start + len(line.rstrip()), rules.nothing)
        start += len(line) + 1


def _whole(line: str, rules: Language) -> bool:
    """Whether the line is one statement; where a sign ends statements, one inside a block."""
    bare = line.strip()
    if not rules.ends:
        return bool(bare) and not re.match(rules.skipped, line)
    pairs = all(bare.count(a) == bare.count(b) for a, b in ("()", "[]", "{}"))
    return pairs and bare.endswith(rules.ends) and line[:1].isspace() and not bare.startswith(("for", "}"))


def _inner_lines(source: str, token: Token) -> range:
    """The numbers of the lines that ``token`` spans, where it spans several."""
    first = source.count("\n", 0, token.start)
    count = token.text.count("\n")
    return range(first, first + count + 1) if count else range(0)


def _swapped(source: str, tokens: Sequence[Token], closed: Sequence[tuple[int, int]]) -> Iterator[Change]:
    """``f(a, b)`` → ``f(b, a)``, where both are single words, numbers or texts."""
    solid = [token for token in tokens if token.kind != "blank"]
    for name, opened, first, comma, second, shut in zip(*(solid[n:] for n in range(6)), strict=False):
        if name.kind != "word" or (opened.text, comma.text, shut.text) != ("(", ",", ")"):
            continue
        if {first.kind, second.kind} <= {"word", "number", "text"} and first.text != second.text:
            if not any(start <= name.start < end for start, end in closed):
                between = source[first.end : second.start]
                yield Change("argument", first.start, second.end, second.text + between + first.text)


def _skipped(source: str, rules: Language) -> list[tuple[int, int]]:
    """Spans of lines that are never changed, and of the shell's texts given in place (``<<END``)."""
    spans: list[tuple[int, int]] = []
    start, here = 0, ""
    for line in source.split("\n"):
        end = start + len(line) + 1
        if here:
            spans.append((start, end))
            here = "" if line.strip() == here else here
        elif rules.skipped and not rules.ends and (found := re.search(r"<<-?\s*[\"']?(\w+)[\"']?", line)):
            here = found.group(1)
        elif rules.ends and rules.skipped and re.match(rules.skipped, line):
            spans.append((start, end))
        start = end
    return spans
