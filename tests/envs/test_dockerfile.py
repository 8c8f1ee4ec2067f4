"""What of a Dockerfile is honoured without a container engine, and what is refused by its line."""

from __future__ import annotations

import sys

import pytest

from palestra.envs.dockerfile import closure, read_image
from palestra.errors import BundleError
from tests.bundles import write


def image(tmp_path, text, files=None):
    return read_image(write(tmp_path, {"Dockerfile": text, "a.txt": "a", "src/b.py": "b", **(files or {})}))


def test_without_copy_everything_beside_it_is_the_work(tmp_path):
    found = image(tmp_path, "FROM python:3-slim\nWORKDIR /app\n", {"docker-compose.yaml": "x"})
    assert sorted(found.files) == ["a.txt", "src/b.py"] and found.workdir == "/app"
    assert read_image(write(tmp_path / "bare", {"c": "c"})).files.keys() == {"c"}


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        ("COPY . /app", {"Dockerfile", "a.txt", "src/b.py"}),
        ("COPY a.txt /app/sub/", {"sub/a.txt"}),
        ("COPY a.txt /app/other.txt", {"other.txt"}),
        ("COPY src /app", {"b.py"}),
        ("COPY a.txt src/b.py ./", {"a.txt", "b.py"}),
        ('COPY --chown=1:1 "a.txt" .', {"a.txt"}),
    ],
)
def test_copies_are_placed(tmp_path, lines, names):
    assert set(image(tmp_path, f"FROM debian:bookworm\nWORKDIR /app\n{lines}\n").files) == names


def test_variables_packages_and_comments(tmp_path):
    text = """# a comment
FROM python:{}.{}-slim
WORKDIR /srv
WORKDIR work
ENV A=1 B="two words"
ENV C three words
RUN apt-get update && \\
    apt-get install -y --no-install-recommends bash && rm -rf /var/lib/apt/lists/*
RUN pip install --no-cache-dir attrs
CMD ["bash"]
""".format(*sys.version_info[:2])
    found = image(tmp_path, text)
    assert (found.workdir, found.env) == ("/srv/work", {"A": "1", "B": "two words", "C": "three words"})
    assert found.packages == ("attrs",)


def test_what_a_package_needs_comes_with_it():
    found = closure(["hypothesis"])
    assert found[0] == "hypothesis" and "sortedcontainers" in found


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("FROM nvidia/cuda:12", "is none that can be honoured"),
        ("FROM python:2.7", "asks for Python 2.7"),
        ("COPY --from=other /x /app", "needs a container engine"),
        ("COPY absent.txt /app", "no such file"),
        ("COPY ../secret /app", "no such file"),
        ("RUN make install", "is none that can be honoured"),
        ("RUN pip install no-such-package-at-all", "not installed here"),
        ("RUN pip install attrs==0.0.1", "is installed here"),
        ("RUN apt-get install -y no-such-debian-package", "not installed here"),
        ("RUN pip install 'attrs>=1'", "can be checked"),
        ("ENV broken=1 alone", "has no value"),
        ("FLY away", "is not known here"),
        ('COPY "unclosed /app', "cannot be read"),
    ],
)
def test_what_cannot_be_honoured_names_its_line(tmp_path, line, told):
    with pytest.raises(BundleError, match=rf"Dockerfile:3: .*{told}"):
        image(tmp_path, f"FROM python:3-slim\nWORKDIR /app\n{line}\n")


def test_a_copy_outside_the_work_is_refused(tmp_path):
    with pytest.raises(BundleError, match="outside the work in /app"):
        image(tmp_path, "FROM debian\nWORKDIR /app\nCOPY a.txt /etc/a.txt\n")
