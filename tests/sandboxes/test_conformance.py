"""The shipped suite, case by case, on the back ends that run here."""

from __future__ import annotations

import pytest

from palestra.sandboxes import conformance
from palestra.sandboxes.conformance.runner import Case, Failed, Trial, load

load()


@pytest.mark.parametrize("name", sorted(conformance.CASES))
async def test_local(name: str) -> None:
    report = await conformance.run("local", only=[name])
    assert report.passed, report.verdicts[0].reason


async def test_process_passes_what_needs_no_isolation_and_says_what_it_lacks() -> None:
    report = await conformance.run("process")
    assert report.passed, [verdict for verdict in report.verdicts if verdict.status == "failed"]
    skipped = [verdict for verdict in report.verdicts if verdict.status == "skipped"]
    assert all(verdict.reason.startswith("the process back end offers no ") for verdict in skipped)
    assert report.protections[0] == "unsafe-no-isolation"


def test_the_suite_is_as_large_as_promised_and_each_case_promises_something() -> None:
    assert len(conformance.CASES) >= 60
    assert all(case.promise.endswith(".") for case in conformance.CASES.values())


async def test_a_failing_case_fails_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wrong(t: Trial) -> None:
        """Never holds."""
        raise Failed("got 1, expected 2")

    async def crash(t: Trial) -> None:
        """Breaks."""
        raise OSError("a foreign error")

    for name, body in (("wrong", wrong), ("crash", crash)):
        monkeypatch.setitem(conformance.CASES, name, Case(name, "x.", frozenset(), body))
        report = await conformance.run("process", only=[name])
        assert not report.passed and report.count("failed") == 1
    assert "OSError crossed the contract" in report.verdicts[0].reason


async def test_skipping_everything_is_not_passing() -> None:
    report = await conformance.run("process", only=["there-is-no-network"])
    assert report.count("skipped") == 1 and not report.passed
