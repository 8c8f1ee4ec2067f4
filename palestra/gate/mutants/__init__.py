"""Small wrong changes of a solution, which a test suite must notice."""

from palestra.gate.mutants.languages import LANGUAGES, SUFFIXES
from palestra.gate.mutants.mutant import Mutant, Mutants
from palestra.gate.mutants.python import OPERATORS, python_mutants
from palestra.gate.mutants.tokens import token_mutants

__all__ = ["LANGUAGES", "OPERATORS", "SUFFIXES", "Mutant", "Mutants", "mutants_of", "python_mutants", "token_mutants"]


def mutants_of(source: str, name: str, *, limit: int | None = None, seed: int = 0) -> Mutants | None:
    """The mutants of the file ``name``, in the language that the end of its name says; None where none is known.

    Raises BundleError where the file cannot be read as that language."""
    language = SUFFIXES.get(name.rpartition(".")[2].lower())
    if language == "python":
        return python_mutants(source, limit=limit, seed=seed, name=name)
    return token_mutants(source, language, limit=limit, seed=seed, name=name) if language else None
