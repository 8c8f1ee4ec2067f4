"""Argument lists: examples first, new ones like them, tied together as they are."""

import ast
from itertools import islice
from random import Random

from palestra.forge.code.examples import Example
from palestra.forge.code.find import Source
from palestra.forge.code.inputs import Parameters, from_annotations, relate, render
from palestra.forge.code.package import find_package
from palestra.forge.code.plans import plan_functions
from palestra.verify.inside.literals import read_first


def plans(folder, source):
    (folder / "shop.py").write_text(source)
    made, refused = plan_functions(Source(find_package(str(folder / "shop.py"))))
    return {plan.function.symbol: plan for plan in made}, refused


def parameters(signature):
    return Parameters.of(ast.parse(f"def f({signature}): pass").body[0])


def test_arguments_as_source_text():
    assert render(Example((1, "a", {"k": [None]}), {"key": (2.5,)})) == "1, 'a', {'k': [None]}, key=(2.5,)"
    assert render(Example(())) == ""


def test_what_a_signature_says():
    spec = parameters("a, b: int, c=3, d=open, *rest, e, g='x', **more")
    assert (spec.positional, spec.required, spec.variadic) == (("a", "b", "c", "d"), 2, True)
    assert (spec.keyword_only, spec.needed_keywords) == (("e", "g"), ("e",))
    assert (spec.defaults, spec.annotations) == ({"c": 3, "g": "x"}, {"b": "int"})


def test_calls_are_distinct_reproducible_and_within_the_budget(tmp_path):
    made, _ = plans(tmp_path, 'def f(a, b=2):\n    """>>> f("blue_shirt", 3)"""\n')
    calls = list(islice(made["shop.f"].calls(0, 30, 10), 500))
    assert calls[0] == "'blue_shirt', 3" and len(set(calls)) == 500
    assert all(len(call) <= 20 for call in calls)
    assert calls == list(islice(made["shop.f"].calls(0, 30, 10), 500))
    assert calls != list(islice(made["shop.f"].calls(1, 30, 10), 500))


def test_a_small_space_of_inputs_ends(tmp_path):
    made, _ = plans(tmp_path, 'def f(a):\n    """>>> f(True)"""\n')
    assert sorted(made["shop.f"].calls(0, 48, 8)) == ["False", "True"]


def test_an_example_too_long_to_show_is_left_out(tmp_path):
    made, _ = plans(tmp_path, 'def f(a):\n    """>>> f("a very long example indeed, too long to show")"""\n')
    assert all(len(call) <= 20 for call in islice(made["shop.f"].calls(0, 20, 0), 50))


def test_values_of_parameters_of_the_same_name_are_borrowed(tmp_path):
    source = (
        'def f(seq):\n    """>>> f("abc")"""\ndef g(seq):\n    """>>> g([1, 2])"""\ndef h(seq):\n    """Nothing."""\n'
    )
    made, _ = plans(tmp_path, source)
    kinds = {type(read_first(call)) for call in islice(made["shop.f"].calls(0, 48, 8), 300)}
    assert kinds == {str, list}
    assert {type(read_first(call)) for call in islice(made["shop.h"].calls(0, 48, 8), 300)} == {str, list}
    assert made["shop.f"].example_calls() == {"'abc'"} and made["shop.h"].example_calls() == set()


def test_numbers_are_borrowed_only_where_they_are_alike(tmp_path):
    source = 'def f(n):\n    """>>> f(3)"""\ndef g(n):\n    """>>> g(29434490)"""\ndef h(n):\n    """>>> h("abc")"""\n'
    made, _ = plans(tmp_path, source)
    assert all(abs(read_first(call)) < 1000 for call in islice(made["shop.f"].calls(0, 48, 8), 10))


def test_functions_that_take_functions_are_left_out(tmp_path):
    source = 'def f(predicate, seq):\n    """>>> f("x", [1])"""\ndef g(a):\n    """>>> g(len)"""\ndef h(a): pass\n'
    made, refused = plans(tmp_path, source)
    assert made == {} and {symbol: text.split()[0] for symbol, text in refused.items()} == {
        "shop.f": "takes",
        "shop.g": "takes",
        "shop.h": "has",
    }


def test_keys_follow_their_container():
    template, made = Example(("a", {"a": 1, "b": 2})), Example(("zzz", {"k": 5, "m": 6}))
    first = [relate(template, made, Random(seed)).args[0] for seed in range(200)]
    assert set(first) == {"k", "m", "zzz"} and first.count("zzz") < 60  # one in six is left as it was


def test_lists_of_keys_and_paths_follow_their_container():
    template, made = Example((["a", "b"], {"a": 1, "b": 2})), Example((["x", "y"], {"k": 5}))
    assert ["k", "k"] in [relate(template, made, Random(seed)).args[0] for seed in range(20)]
    template, made = Example((["a", 0], {"a": [7]})), Example((["x", 3], {"k": [8, 9]}))
    found = [relate(template, made, Random(seed)).args[0] for seed in range(100)]
    assert ["k", 0] in found and ["k", 1] in found and ["k"] in found


def test_unrelated_arguments_stay_as_they_are():
    template, made = Example(("a", {"b": 1})), Example(("z", {"k": 5}))
    assert all(relate(template, made, Random(seed)) == made for seed in range(50))


def test_annotations_stand_in_for_examples():
    assert from_annotations(parameters("a: str, b: int = 2"), {})[0].args == ("device_type",)
    assert from_annotations(parameters("a: typing.Sequence[int]"), {})[0].args == ([1, 2, 3],)
    assert from_annotations(parameters("a: str, b"), {}) == ()
    assert from_annotations(parameters("a: str, *, b"), {}) == ()
    assert from_annotations(parameters(""), {}) == ()
    assert from_annotations(parameters("seq"), {"seq": ("x", [1])}) == (Example(("x",)), Example(([1],)))
