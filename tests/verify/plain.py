"""Hypothesis strategies of values that graded code may return, as the grader holds them."""

from hypothesis import strategies as st

from palestra.verify.values import Array, Kin, Produced, Record

FLOATS = st.floats() | st.sampled_from([0.0, -0.0, 5e-324, 1.0, 1.0000000000000002, float("inf"), float("nan")])
SCALARS = (
    st.none() | st.booleans() | st.integers(-(10**40), 10**40) | FLOATS | st.text(max_size=8) | st.binary(max_size=8)
    | st.complex_numbers()
)  # fmt: skip
KEYS = st.recursive(
    st.booleans() | st.integers(-3, 3) | st.text(max_size=3) | FLOATS,
    lambda inner: st.lists(inner, max_size=2).map(tuple) | st.frozensets(inner, max_size=2),
    max_leaves=4,
)
PYTHON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.sets(KEYS, max_size=4)
        | st.frozensets(KEYS, max_size=4)
    ),
    max_leaves=10,
)
"""What Python itself holds."""
ARRAYS = st.lists(FLOATS, max_size=6).map(lambda items: Array("float64", (len(items),), tuple(items)))
VALUES = (
    PYTHON
    | ARRAYS
    | st.builds(lambda x, y: Record("Point", (("x", x), ("y", y))), PYTHON, PYTHON)
    | st.builds(Kin, st.just("deque"), st.lists(PYTHON, max_size=3))
    | st.builds(Produced, st.lists(PYTHON, max_size=3).map(tuple), st.booleans())
)
"""What a grader may hold."""
