"""Mutants of other languages: changes stand on tokens, never inside a text, a comment or a type."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palestra.errors import BundleError
from palestra.gate.mutants import LANGUAGES, token_mutants
from palestra.gate.mutants.tokens import tokenise

C = """#include <stdio.h>
/* a - b */
static int *f(int *p, vector<int> v) {
    int n = 0; // n + 1
    puts("a < b");
    h(n, p);
    if (n >= 2 && *p == 'x') n += i * 2;
    return n - 1;
}
"""
SHELL = """#!/bin/sh
# x && y
if [ "$n" -lt 3 ] && [ "$2" = "a" ]; then
    echo low >&2
fi
cat <<END
if a && b
END
exit 0
"""


def added(source, language, operator=None):
    made = token_mutants(source, language).live
    return [
        line[1:].strip()
        for mutant in made
        if operator in (None, mutant.operator)
        for line in mutant.diff.split("\n")[3:]
        if line[0] == "+"
    ]


def test_c():
    assert added(C, "c", "arithmetic") == [
        "if (n >= 2 && *p == 'x') n -= i * 2;",
        "if (n >= 2 && *p == 'x') n += i + 2;",
        "return n + 1;",
    ]
    assert added(C, "c", "boundary") == ["if (n > 2 && *p == 'x') n += i * 2;"]
    assert added(C, "c", "boolean") == ["if (n >= 2 || *p == 'x') n += i * 2;"]
    assert added(C, "c", "argument") == ["h(p, n);"]
    assert added(C, "c", "deletion")[:2] == [";", ";"]
    assert 'puts("");' in added(C, "c", "constant")


def test_what_is_no_operator_stays():
    """A template, a pointer, an include, a comment and a text hold signs that are no operators."""
    for mutant in token_mutants(C, "cpp").live:
        assert "#include <stdio.h>\n/* a - b */\nstatic int *f(int *p, vector<int> v) {" in mutant.source
        assert "// n + 1" in mutant.source and "a <= b" not in mutant.source


def test_shell():
    lines = added(SHELL, "sh")
    assert 'if [ "$n" -ge 3 ] && [ "$2" = "a" ]; then' in lines and 'if [ "$n" -le 3 ] && [ "$2" = "a" ]; then' in lines
    assert 'if [ "$n" -lt 3 ] || [ "$2" = "a" ]; then' in lines and "exit 1" in lines and ":" in lines
    for mutant in token_mutants(SHELL, "sh").live:
        assert "# x && y" in mutant.source and "\nif a && b\nEND" in mutant.source and "2>&" not in mutant.source


def test_javascript():
    source = "const re = /a+b/g;\nlet q = a / b / c;\nconst s = xs.filter(x => x !== 2 || /x-1/.test(x));\n"
    lines = added(source, "javascript")
    assert "let q = a * b / c;" in lines and "let q = a / b * c;" in lines
    assert "const s = xs.filter(x => x === 2 || /x-1/.test(x));" in lines
    assert not any("/a-b/" in line or "/x-0/" in line for line in lines)


def test_an_unknown_language_and_a_huge_file():
    with pytest.raises(BundleError, match="'jawa': unknown, did you mean java"):
        token_mutants("x", "jawa")
    with pytest.raises(BundleError, match="at most 1000000"):
        token_mutants("x" * 1_000_001, "c")


def test_a_limit_is_drawn_by_seed():
    every, some = token_mutants(C, "c"), token_mutants(C, "c", limit=5, seed=3)
    assert some.of == len(every.live) and len(some.live) == 5 and set(some.live) <= set(every.live)
    assert some == token_mutants(C, "c", limit=5, seed=3) != token_mutants(C, "c", limit=5, seed=4)


@settings(max_examples=100)
@given(st.text(max_size=120), st.sampled_from(sorted(LANGUAGES)))
def test_tokens_cover_any_text_and_no_mutant_equals_it(text, language):
    assert "".join(token.text for token in tokenise(text, LANGUAGES[language])) == text
    assert text not in {mutant.source for mutant in token_mutants(text, language).live}
