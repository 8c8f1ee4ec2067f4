"""Messages to token ids for models that read bytes: one id a byte, and one for each role mark.

A turn is ``<role> bytes… <end>``; a prompt ends with the mark that opens the assistant's turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from palestra.types import Message

END = 256
ROLE_MARKS = {"system": 257, "user": 258, "assistant": 259, "tool": 260}
PADDING = 261
VOCABULARY = 262


class ByteRenderer:
    """Text of 0–255 as UTF-8 bytes; ids from 256 are marks, so no text can imitate one."""

    end = END
    padding = PADDING

    def prompt(self, messages: Sequence[Message]) -> tuple[int, ...]:
        return (*self._turns(messages), ROLE_MARKS["assistant"])

    def extend(
        self, prompt: tuple[int, ...], completion: tuple[int, ...], messages: Sequence[Message]
    ) -> tuple[int, ...]:
        closed = () if completion and completion[-1] == END else (END,)  # a cut-off turn is closed by us
        return (*prompt, *completion, *closed, *self._turns(messages), ROLE_MARKS["assistant"])

    def answer(self, text: str) -> tuple[int, ...]:
        return (*_bytes(text), END)

    def text(self, completion: Sequence[int]) -> str:
        ids = list(completion)
        if ids and ids[-1] == END:
            ids.pop()
        # A mark inside the turn reads as U+FFFD: visible, and equal to nothing that a grader accepts.
        return b"".join(bytes([i]) if i < END else "\N{REPLACEMENT CHARACTER}".encode() for i in ids).decode(
            errors="replace"
        )

    @staticmethod
    def _turns(messages: Sequence[Message]) -> list[int]:
        ids: list[int] = []
        for message in messages:
            ids += (ROLE_MARKS[message.role], *_bytes(message.content), END)
        return ids


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # a lone surrogate is a legal str, so it must be a legal prompt
