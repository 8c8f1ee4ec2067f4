"""The ``palestra`` command."""

from __future__ import annotations

import typer

from palestra.cli import doctor, env, eval, forge, gate, quickstart, rollout, sandbox, store, train, version
from palestra.cli.common import fail
from palestra.errors import PalestraError

app = typer.Typer(
    name="palestra",
    help="From a code base to a better policy: build, prove and train on executable RL environments.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("quickstart")(quickstart.quickstart)
app.command("rollout")(rollout.rollout)
app.command("train")(train.train)
app.command("eval")(eval.evaluate)
app.command("doctor")(doctor.doctor)
app.command("version")(version.version)
app.add_typer(env.app, name="env")
app.add_typer(forge.app, name="forge")
app.add_typer(gate.app, name="gate")
app.add_typer(store.app, name="store")
app.add_typer(sandbox.app, name="sandbox", help="Run commands in isolation, and check what isolates them.")


def main() -> None:
    try:
        app()
    except PalestraError as error:
        fail(error)


if __name__ == "__main__":
    main()
