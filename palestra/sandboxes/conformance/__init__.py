"""The conformance suite: what any back end must do, run against a real one.

``await run("local")`` opens a fresh sandbox per case. A case that needs what a back end does not offer is skipped, and
the reason says what is not offered; a skip is never a pass.
"""

from palestra.sandboxes.conformance.runner import CAPABILITIES, CASES, Report, Verdict, run

__all__ = ["CAPABILITIES", "CASES", "Report", "Verdict", "run"]
