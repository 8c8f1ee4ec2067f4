"""The leak scan: each way of leaving the answer in sight is found, with file and line; what may be seen is not."""

import base64
import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palestra.gate.leaks import Hidden, Thresholds, Visible, scan, visible_of

GOLD = """
    counts = {}
    for letter in text.lower():
        if letter.isalpha():
            counts[letter] = counts.get(letter, 0) + 1
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
"""
NOTES = "# Count letters\n\nWrite `count(text, limit)`: the commonest letters of a text, the most frequent one first.\n"


@pytest.fixture
def bundle(tmp_path):
    (tmp_path / "environment/src").mkdir(parents=True)
    (tmp_path / "instruction.md").write_text(NOTES)
    (tmp_path / "environment/Dockerfile").write_text("FROM python:3.11\nRUN pip install numpy\n")
    return tmp_path


def leaks(bundle, hidden, **limits):
    return [(leak.kind, leak.where) for leak in scan(visible_of(bundle), hidden, Thresholds(**limits))]


def test_a_clean_bundle_leaks_nothing(bundle):
    hidden = Hidden(gold={"solve.py": GOLD}, values=["[('a', 3)]", "secret words"], packages=["lettercount"])
    assert leaks(bundle, hidden) == []


def test_the_gold_in_a_file_is_found_whatever_its_spacing(bundle):
    squeezed = " ".join(GOLD.split())
    (bundle / "environment/src/old.py").write_text(f"# old\nx = 1\n{squeezed}\n")
    (leak,) = scan(visible_of(bundle), Hidden(gold={"solve.py": GOLD}))
    assert (leak.kind, leak.file, leak.line) == ("gold", "environment/src/old.py", 3)
    assert leak.found.startswith("counts = { }") and "shows 100% of solve.py" in leak.told


def test_a_part_of_the_gold_counts_by_share_and_by_run(bundle):
    piece = "counts[letter] = counts.get(letter, 0) + 1"
    (bundle / "environment/src/hint.py").write_text(piece)
    hidden = Hidden(gold={"g": GOLD})
    assert leaks(bundle, hidden, share=0.5, run=100) == []
    assert leaks(bundle, hidden, share=0.01, run=100) == [("gold", "environment/src/hint.py:1")]
    assert leaks(bundle, hidden, share=0.5, run=10) == [("gold", "environment/src/hint.py:1")]


def test_what_is_public_does_not_count(bundle):
    (bundle / "environment/src/module.py").write_text(GOLD)
    assert leaks(bundle, Hidden(gold={"g": GOLD}, public=[GOLD])) == []


def test_hidden_values_stand_whole_or_not_at_all(bundle):
    with (bundle / "instruction.md").open("a") as file:
        file.write("A table of 1234567 rows; 'blue whale'; 98765.4321\n")
    seen = [("value", "instruction.md:4")]
    assert leaks(bundle, Hidden(values=["'blue whale'"])) == seen
    assert leaks(bundle, Hidden(values=["1234567"])) == seen
    assert leaks(bundle, Hidden(values=["234567", "123456", "8765.43", "98765.4"])) == []
    assert leaks(bundle, Hidden(values=["rows"])) == [] != leaks(bundle, Hidden(values=["rows"]), letters=4)
    assert leaks(bundle, Hidden(values=["'blue whale'"]), values=1) == []


def test_a_hidden_file_in_sight(bundle):
    data = b"case 1, 2 -> 3\ncase 4, 5 -> 9, and more\n"
    (bundle / "environment/src/other_name").write_bytes(data)
    assert leaks(bundle, Hidden(files={"tests/cases": data})) == [("file", "environment/src/other_name")]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("COPY solution /app/x", "fetch"),
        ("ADD ./tests/ /x", "fetch"),
        ("RUN pip install lettercount==1.0", "fetch"),
        ("RUN pip install \\\n  lettercount", "fetch"),
        ("RUN pip install lettercounter other-lettercount", None),
        ("RUN echo lettercount", None),
        ("COPY src /app/tests_of_mine", None),
    ],
)
def test_lines_that_fetch_the_answer(bundle, line, kind):
    with (bundle / "environment/Dockerfile").open("a") as file:
        file.write(line + "\n")
    assert leaks(bundle, Hidden(packages=["lettercount"])) == ([(kind, "environment/Dockerfile:3")] if kind else [])


def test_a_list_of_requirements_that_fetches_the_answer(bundle):
    (bundle / "environment/requirements.txt").write_text("numpy\nlettercount>=1\n")
    assert leaks(bundle, Hidden(packages=["lettercount"])) == [("fetch", "environment/requirements.txt:2")]


def test_a_history_in_sight(bundle):
    (bundle / "environment/src/.git/logs").mkdir(parents=True)
    (bundle / "environment/src/.git/logs/HEAD").write_text("0 1\n")
    assert leaks(bundle, Hidden()) == [("history", "environment/src/.git/logs/HEAD")]


def packed(how):
    data, buffer = GOLD.encode(), io.BytesIO()
    if how == "zip":
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("in/solve.py", data)
    elif how in ("tar", "tar.gz"):
        with tarfile.open(fileobj=buffer, mode="w" if how == "tar" else "w:gz") as archive:
            entry = tarfile.TarInfo("in/solve.py")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    else:
        return {
            "gz": gzip.compress,
            "bz2": bz2.compress,
            "xz": lzma.compress,
            "base64": lambda text: b"x\n" + base64.b64encode(text),
            "hex": lambda text: b"x\n\n" + text.hex().encode(),
        }[how](data)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("how", "inner"),
    [
        ("zip", "!in/solve.py:2"),
        ("tar", "!in/solve.py:2"),
        ("tar.gz", "!content!in/solve.py:2"),
        ("gz", "!content:2"),
        ("bz2", "!content:2"),
        ("xz", "!content:2"),
        ("base64", "!base64 on line 2:2"),
        ("hex", "!hex on line 3:2"),
    ],
)
def test_the_gold_is_found_in_what_is_packed(bundle, how, inner):
    (bundle / "environment/data").write_bytes(packed(how))
    found = leaks(bundle, Hidden(gold={"g": GOLD}))
    assert ("gold", f"environment/data{inner}") in found


def test_what_cannot_be_scanned_is_said(bundle, monkeypatch):
    monkeypatch.setattr("palestra.gate.leaks.visible.LARGEST_BYTES", 1000)
    (bundle / "environment/big").write_bytes(b"x" * 1001)
    (bundle / "environment/bomb.gz").write_bytes(gzip.compress(b"y" * 1001))
    (bundle / "environment/broken.gz").write_bytes(gzip.compress(b"y" * 500)[:-9])
    assert leaks(bundle, Hidden()) == [
        ("unseen", "environment/big"),
        ("unseen", "environment/bomb.gz!content"),
        ("unseen", "environment/broken.gz!content"),
    ]


def test_an_archive_of_archives_does_not_hold_up_the_gate(bundle, monkeypatch):
    monkeypatch.setattr("palestra.gate.leaks.visible.UNPACKED_BYTES", 5000)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for n in range(500):
            archive.writestr(f"{n}", b"z" * 1000)
    (bundle / "environment/many.zip").write_bytes(buffer.getvalue())
    seen = visible_of(bundle)
    assert len(seen) < 20 and seen[-1].data is None


def test_a_link_is_not_followed(bundle, tmp_path_factory):
    secret = tmp_path_factory.mktemp("other") / "secret"
    secret.write_text(GOLD)
    (bundle / "environment/link").symlink_to(secret)
    (bundle / "environment/loop").symlink_to(bundle / "environment")
    assert leaks(bundle, Hidden(gold={"g": GOLD})) == []


@settings(max_examples=60)
@given(st.binary(max_size=400), st.text(max_size=60), st.text(max_size=20))
def test_any_bytes_are_scanned(data, gold, value):
    scan([Visible("x", data)], Hidden(gold={"g": gold}, values=[value]))


@settings(max_examples=60)
@given(
    st.text(st.characters(categories=["L", "N"]), min_size=6, max_size=20), st.text(max_size=40), st.text(max_size=40)
)
def test_a_value_between_blanks_is_always_found(value, before, after):
    seen = [Visible("x", f"{before} {value} {after}".encode(errors="replace"))]
    assert [leak.kind for leak in scan(seen, Hidden(values=[value]))] == ["value"]
