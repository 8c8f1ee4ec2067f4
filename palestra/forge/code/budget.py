"""What a forged problem may be: its size, and what its answer may be."""

from __future__ import annotations

from dataclasses import dataclass

from palestra.verify.calls import Result


@dataclass(frozen=True, slots=True)
class Budget:
    """cases         problems wanted of each function
    prompt_bytes  UTF-8 bytes of a call as text, at most
    answer_bytes  UTF-8 bytes of the literal of its result, at most
    call_s        CPU seconds that one call may take
    mean_call_s   CPU seconds that calls may take on average
    """

    cases: int = 3000
    prompt_bytes: int = 48
    answer_bytes: int = 32
    call_s: float = 0.1
    mean_call_s: float = 0.005

    def why_unfit(self, result: Result) -> str | None:
        """Why a call with this result is not fit to ask, or None."""
        if result.mutates:
            return "changes its arguments"
        if result.unsuitable:
            return f"returns {result.unsuitable}"
        if result.value is None:
            return f"raises {result.error}"
        if len(result.value.encode()) > self.answer_bytes:
            return f"answers are longer than {self.answer_bytes} bytes"
        return None
