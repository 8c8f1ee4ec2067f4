"""New values have the shape of their template."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palestra.forge.code.shapes import Shapes


def draws(template, count=300, **settings):
    shapes = Shapes(Random(7), **settings)
    return [shapes.like(template) for _ in range(count)]


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(PLAIN, st.integers(0, 5))
def test_any_template_gives_values_of_its_type_and_the_seed_decides(template, seed):
    one, again = (Shapes(Random(seed)).like(template) for _ in range(2))
    assert type(one) is type(template) and repr(one) == repr(again)


@pytest.mark.parametrize("template", [3, [1, 2], (1, 2.5), "device_type", {"a": 1}, True])
def test_values_differ(template):
    assert len({repr(value) for value in draws(template)}) > (1 if template is True else 5)


def test_lists_hold_items_like_their_own_and_are_short():
    values = draws([1, "ab"], most_items=5)
    assert {type(item) for value in values for item in value} == {int, str}
    assert {len(value) for value in values} == {0, 1, 2, 3, 4, 5}
    assert any(len(set(map(repr, value))) < len(value) for value in values)


def test_records_keep_their_places_and_fields():
    for value in draws([("a", 1), ("b", 2)]):
        assert all(len(item) == 2 and type(item[0]) is str and type(item[1]) is int for item in value)
    for value in draws([{"id": 1, "name": "Cheese"}]):
        assert all(list(item) == ["id", "name"] for item in value)


def test_identifiers_keep_their_style():
    assert all(value.islower() and value.replace("_", "").isalpha() for value in draws("device_type"))
    assert all(value[0].isupper() and value.isalnum() for value in draws("DeviceType"))
    assert {value.count("_") for value in draws("device_type")} == {0, 1, 2}


def test_sentences_keep_spaces_and_accents():
    assert any(" " in value for value in draws("man from the boondocks"))
    assert any(not value.isascii() for value in draws("älämölö"))


def test_numbers_keep_their_size_and_sign():
    assert all(0 <= value <= 9 for value in draws(3))
    assert all(100 <= value <= 99_999 for value in draws(1002))
    assert all(value >= 0 for value in draws(1002)) and any(value < 0 for value in draws(-1021))
    assert all(len(repr(value).partition(".")[2]) <= 2 for value in draws(12.25))


def test_sortedness_is_kept_where_it_is_asked_for():
    assert all(value == sorted(value) for value in draws([1, 3, 5], is_sorted=True))
    assert any(value != sorted(value) for value in draws([1, 3, 5]))


def test_letters_stand_for_letters_and_words_for_words():
    assert all(value.isupper() or value == "" for value in draws("ABC"))
    near = ("octopus",)
    assert any("octopus" in value for value in draws("device_type", near=near))
