"""Write docs/cli.md from the commands' own help; with --check, fail when it is not what they say."""

from __future__ import annotations

import sys
from pathlib import Path

from typer.main import get_command

from palestra.cli.main import app

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
HEAD = """# Command line

Noun, then verb. `--json` on every command prints one JSON object on stdout; progress goes to stderr. Exit 0: done;
1: the thing asked about is not so (a gate refused, a check failed); 2: wrong usage or input, told in one sentence on
stderr.

This page is written by `scripts/cli_docs.py` from the commands themselves.
"""


def page() -> str:
    return HEAD + "".join(sections(get_command(app), "palestra"))


def sections(command: object, name: str) -> list[str]:
    """A section for each command below ``command``, in the order in which they are registered."""
    inner = getattr(command, "commands", None)
    if inner is not None:
        return [text for verb, each in inner.items() for text in sections(each, f"{name} {verb}")]
    lines = [f"\n## {name}\n", *(paragraph.strip() for paragraph in (command.help or "").split("\n\n"))]  # type: ignore[attr-defined]
    arguments = [parameter for parameter in command.params if parameter.name != "help"]  # type: ignore[attr-defined]
    table = [row for parameter in arguments if (row := described(parameter))]
    if table:
        lines.append("\n".join(["| option | what it is | default |", "|---|---|---|", *table]))
    return ["\n\n".join(lines).replace("\n\n\n", "\n\n") + "\n"]


def described(parameter: object) -> str:
    is_option = parameter.param_type_name == "option"  # type: ignore[attr-defined]
    names = [*parameter.opts] if is_option else [parameter.metavar or parameter.name]  # type: ignore[attr-defined]
    default = parameter.default  # type: ignore[attr-defined]
    is_shown = not (default is None or default is False or default == () or callable(default))
    told = (getattr(parameter, "help", None) or "").replace("|", "\\|")
    return f"| `{', '.join(names)}` | {told} | {f'`{default}`' if is_shown else ''} |"


def main() -> None:
    text = page()
    if "--check" not in sys.argv:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        sys.exit(f"{PAGE.name} is not what the commands say; run: python scripts/cli_docs.py")


if __name__ == "__main__":
    main()
