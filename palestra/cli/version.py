"""palestra version"""

from __future__ import annotations

from palestra import __version__
from palestra.cli.common import AsJson, emit


def version(as_json: AsJson = False) -> None:
    """Print the version of Palestra and of what it stands on.

    Example: palestra version --json
    """
    import platform
    from importlib import metadata

    found = {"palestra": __version__, "python": platform.python_version()}
    for name in ("torch", "numpy", "pydantic", "sqlalchemy"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    emit(as_json, found, "\n".join(f"{name} {number}" for name, number in found.items()))
