from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from palestra.models.render import END, ROLE_MARKS, ByteRenderer
from palestra.types import Message

RENDER = ByteRenderer()


def test_prompt_layout() -> None:
    ids = RENDER.prompt([Message("system", "a"), Message("user", "bé")])
    assert ids == (257, 97, END, 258, 98, 0xC3, 0xA9, END, ROLE_MARKS["assistant"])


@given(st.text())
def test_an_answer_reads_back(text: str) -> None:
    ids = RENDER.answer(text)
    assert ids[-1] == END
    assert RENDER.text(ids) == text


def test_marks_and_broken_utf8_are_visible_in_the_text() -> None:
    assert RENDER.text([97, ROLE_MARKS["user"], 98]) == "a\ufffdb"
    assert RENDER.text([0xC3]) == "\ufffd"
    assert RENDER.text([]) == ""


def test_lone_surrogates_can_be_shown() -> None:
    assert RENDER.prompt([Message("user", "\ud800")])[1:4] == (0xED, 0xA0, 0x80)


@given(st.lists(st.integers(0, 255), max_size=8), st.booleans())
def test_a_next_prompt_keeps_the_ids_that_were_sampled(sampled: list[int], ended: bool) -> None:
    """Ids that are no UTF-8 would not survive decoding and encoding again; they stand in the prompt as they are."""
    prompt = RENDER.prompt([Message("user", "q")])
    completion = (*sampled, *((END,) if ended else ()))
    grown = RENDER.extend(prompt, completion, [Message("tool", "r")])
    assert grown[: len(prompt) + len(sampled)] == prompt + tuple(sampled)
    assert grown[len(prompt) + len(sampled) :] == (END, 260, ord("r"), END, ROLE_MARKS["assistant"])
