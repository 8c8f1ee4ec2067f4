"""Comparisons of outputs: cases by hand, and checkers in their sandbox."""

import pytest

from palestra.errors import GraderError
from palestra.verify.outputs import Checker, Exact, Floats, Tokens


@pytest.mark.parametrize(
    ("compare", "got", "wanted", "is_same"),
    [
        (Exact(), b"a\n", b"a", True),
        (Exact(), b"a\n\n", b"a\n", False),
        (Exact(), b"a ", b"a", False),
        (Exact(), b"a\r\n", b"a\n", False),
        (Exact(), b"", b"\n", True),
        (Exact(), b"\xff", b"\xff", True),
        (Tokens(), b" a\r\n\tb", b"a b", True),
        (Tokens(), b"ab", b"a b", False),
        (Tokens(), b"1.0", b"1", False),
        (Floats(), b"3.1415927", b"3.14159265", True),
        (Floats(), b"3.1416", b"3.14159265", False),
        (Floats(), b"1e-10", b"0.0", True),  # within abs_tol 1e-9
        (Floats(), b"1e-8", b"0.0", False),
        (Floats(), b"1000000.5", b"1000000.0", True),  # 0.5 <= 1e-6 * 1e6
        (Floats(), b"1000002", b"1000000.0", False),
        (Floats(), b"3.0000001", b"3", False),  # a whole number is a word
        (Floats(), b"3", b"3.0", True),
        (Floats(), b"-0.5", b"0.5", False),
        (Floats(), b"nan", b"1.0", False),
        (Floats(), b"nan", b"nan", True),
        (Floats(), b"inf", b"1.0", False),
        (Floats(), b"1e999", b"1e999", True),
        (Floats(), b"1e400", b"1.5e400", False),  # beyond a double: only the same words
        (Floats(), b"1_0.0", b"10.0", False),
        (Floats(), b"0x1p3", b"8.0", False),
        (Floats(), b"1.0 2.0", b"1.0", False),
        (Floats(), b"yes 1.0000000001", b"yes 1.0", True),
        (Floats(), b"no 1.0", b"yes 1.0", False),
        (Floats(rel_tol=0.1, abs_tol=0.0), b"9.5", b"10.0", True),
        (Floats(), b"1" * 100_000 + b".5", b"1.0", False),
    ],
)
async def test_comparisons(compare, got, wanted, is_same):
    assert await compare.same(b"", got, wanted) is is_same


CHECK = """
import sys
asked, said, expected = (open(name, "rb").read() for name in sys.argv[1:])
print("right" if sorted(said.split()) == sorted(expected.split()) and asked == b"in" else "wrong")
"""


async def test_a_checker_decides():
    assert await Checker(CHECK).same(b"in", b"2 1", b"1 2") is True
    assert await Checker(CHECK).same(b"in", b"2 2", b"1 2") is False
    assert await Checker(CHECK).same(b"other", b"2 1", b"1 2") is False


@pytest.mark.parametrize(
    "source",
    [
        "print('right'); raise SystemExit(2)",
        "raise ValueError",
        "(",
        "import os; os.kill(os.getpid(), 9)",
        "",
        "print('right or wrong')",
    ],
)
async def test_a_checker_that_fails_is_no_verdict(source):
    with pytest.raises(GraderError, match="checker"):
        await Checker(source).same(b"", b"", b"")
