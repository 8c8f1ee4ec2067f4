"""The command line: a file per noun. Modules import typer alone; what a command needs, it imports when it runs."""
