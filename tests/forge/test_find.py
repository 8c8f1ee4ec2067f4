"""Find packages and public functions without importing them."""

import textwrap

import pytest

from palestra.errors import ForgeError
from palestra.forge.code.find import Source
from palestra.forge.code.package import find_package


def package(folder, **files):
    for name, text in files.items():
        file = folder / "pack" / (name.replace("__", "/", 1) if name != "__init__" else name)
        file = file.with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
    return find_package(str(folder / "pack"))


def symbols(found):
    return [function.symbol for function in Source(found).functions()]


def test_names_are_the_shortest_public_ones(tmp_path):
    found = package(
        tmp_path,
        __init__="from .core import shown, renamed as other\nfrom .more import *\n",
        core="def shown(): pass\ndef renamed(): pass\ndef inner(): pass\ndef _hidden(): pass\n",
        more="__all__ = ['starred', '_odd']\ndef starred(): pass\ndef unlisted(): pass\ndef _odd(): pass\n",
        _private="def nobody(): pass\n",
        test_core="def test_it(): pass\n",
    )
    assert symbols(found) == ["pack.core.inner", "pack.more._odd", "pack.other", "pack.shown", "pack.starred"]


def test_a_rebound_name_is_not_known(tmp_path):
    found = package(tmp_path, __init__="def f(): pass\ndef g(): pass\nf = cache(f)\nclass g: pass\n")
    assert symbols(found) == []


def test_definitions_under_conditions_count_and_broken_files_do_not(tmp_path):
    found = package(
        tmp_path,
        __init__="try:\n    import x\nexcept ImportError:\n    def f(): pass\nelse:\n    def f(): pass\n",
        broken="def f(:\n",
    )
    assert symbols(found) == ["pack.f"]


def test_an_import_cycle_ends(tmp_path):
    found = package(tmp_path, __init__="from .a import *", a="from .b import *\ndef f(): pass", b="from .a import *")
    assert symbols(found) == ["pack.f"]


def test_nothing_is_imported(tmp_path):
    found = package(tmp_path, __init__="raise SystemExit\ndef f(): pass\n")
    assert symbols(found) == ["pack.f"]


def test_an_installed_package_with_what_its_distribution_says():
    found = find_package("inflection")
    assert (found.name, found.licence) == ("inflection", "MIT")
    assert found.version.count(".") >= 1 and [file.name for file in found.licence_files] == ["LICENSE"]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("inflecton", "did you mean inflection"),
        ("itertools", "built into the interpreter"),
        ("no such", "not a name"),
        ("zzqqxxyy", "install it"),
        ("./absent", "must be a Python file"),
    ],
)
def test_what_is_no_package(source, told):
    with pytest.raises(ForgeError, match=told):
        find_package(source)
