"""report.html: one file that needs nothing else, not even a network."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from plotly import graph_objects as go
from plotly.offline import get_plotlyjs

BEFORE, AFTER, QUIET = "#9aa5b1", "#0f766e", "#c2410c"


def render(report: dict[str, Any]) -> str:
    """The page of a report (as ``collect`` made it)."""
    pages = Environment(
        loader=PackageLoader("palestra.quickstart"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    solved = f"tasks solved by any of {report['settings']['rl']['group_size']}"
    figures = {
        "reward": _lines(report["curves"]["rl"], {"reward": "mean reward", "pass_any": solved}),
        "signal": _lines(report["curves"]["rl"], {"groups_kept": "groups with a signal", "truncated": "cut off"}),
        "kl": _lines(report["curves"]["rl"], {"kl_k1": "KL to warm start, k1", "kl_k3": "k3"}),
        "entropy": _lines(report["curves"]["rl"], {"entropy": "entropy, nats per token", "grad_norm": "gradient norm"}),
        "loss": _lines(report["curves"]["warm"], {"loss": "warm start: loss, nats per token"}),
        "accuracy": _by_environment(report["environments"]),
    }
    page = pages.get_template("report.html.j2")
    return page.render(report=report, figures=figures, plotly=get_plotlyjs())


def _html(figure: go.Figure, name: str) -> str:
    figure.update_layout(
        template="plotly_white", margin={"l": 50, "r": 15, "t": 10, "b": 45}, legend={"orientation": "h", "y": 1.12}
    )
    config = {"displayModeBar": False, "responsive": True}
    return figure.to_html(full_html=False, include_plotlyjs=False, div_id=name, config=config)


def _lines(curve: list[Any], names: dict[str, str]) -> str:
    """One line per metric over steps, with its running mean where it is noisy."""
    figure = go.Figure()
    for (key, label), colour in zip(names.items(), (AFTER, QUIET), strict=False):
        steps = [step for step, values in curve if key in values]
        found = [values[key] for _, values in curve if key in values]
        figure.add_scatter(
            x=steps, y=found, mode="lines", line={"color": colour, "width": 1}, opacity=0.35, showlegend=False
        )
        figure.add_scatter(x=steps, y=_smooth(found), mode="lines", name=label, line={"color": colour, "width": 2})
    figure.update_layout(xaxis_title="step", height=280)
    return _html(figure, "-".join(names))


def _smooth(values: list[float], span: int = 9) -> list[float]:
    """The mean of the last ``span`` values at each place."""
    return [sum(values[max(0, at + 1 - span) : at + 1]) / min(span, at + 1) for at in range(len(values))]


def _by_environment(environments: list[dict[str, Any]]) -> str:
    """Accuracy before and after for each environment, joined by a line, the most improved on top."""
    rows = [env for env in environments if env["before"] and env["after"]]
    rows.sort(key=lambda env: env["after"]["acc"] - env["before"]["acc"])
    figure = go.Figure()
    for env in rows:
        ends = [env["before"]["acc"], env["after"]["acc"]]
        figure.add_scatter(
            x=ends, y=[env["id"]] * 2, mode="lines", line={"color": "#d4d9de", "width": 3}, showlegend=False
        )
    for when, label, colour in (("before", "before RL", BEFORE), ("after", "after RL", AFTER)):
        marks = {"color": colour, "size": 9}
        figure.add_scatter(
            x=[env[when]["acc"] for env in rows],
            y=[env["id"] for env in rows],
            mode="markers",
            name=label,
            marker=marks,
        )
    figure.update_layout(
        xaxis={"range": [-0.02, 1.02], "title": "held-out greedy accuracy"}, height=120 + 22 * len(rows)
    )
    return _html(figure, "accuracy")
