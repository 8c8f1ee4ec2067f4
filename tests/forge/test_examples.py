"""Example calls read from docstrings."""

from palestra.forge.code.examples import Example, read_examples


def calls(doc, name="f"):
    return list(read_examples(doc, name).calls)


def test_literal_calls_wherever_they_stand():
    doc = """
    >>> f(1, 'a', key=[2.5])
    >>> list(f((1, 2)))  # doctest: +SKIP
    >>> mod.f(-1)
    >>> g(f({}), h(3))
    >>> f(1, 'a', key=[2.5])
    """
    expected = [Example((1, "a"), {"key": [2.5]}), Example(((1, 2),)), Example((-1,)), Example(({},))]
    assert calls(doc) == expected


def test_names_bound_to_literals_before():
    assert calls(">>> data = [1, 2]\n>>> f(data)\n>>> data = open\n>>> f(data)\n") == [Example(([1, 2],))]


def test_other_arguments_are_counted_not_read():
    read = read_examples(">>> f(len, [1])\n>>> f(lambda x: x)\n>>> f(*args)\n>>> f(**{'a': 1})\n>>> f(2)\n", "f")
    assert read.calls == (Example((2,)),) and read.opaque == 4


def test_prose_and_broken_examples_are_no_examples():
    assert calls(">>> f(1\n>>> and then f(2)\n>>> f(3)\n") == [Example((3,))]
    assert calls(">>>f(1)\n") == []
    assert calls("") == []
