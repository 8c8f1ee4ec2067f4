"""A PostgreSQL server of our own, on loopback, for the length of a test session."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

INSTALL = "apt-get install postgresql"


def programs():
    """The folder of the newest server programs; None where none is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def lack():
    """Why no server can be started here; None where one can."""
    if programs() is None:
        return f"PostgreSQL is not installed: {INSTALL}"
    if os.geteuid() == 0 and not any(user.pw_name == "postgres" for user in pwd.getpwall()):
        return "PostgreSQL does not run as root, and there is no user postgres"
    return None


@contextmanager
def server():
    """The URL of a new, empty database server; it is ended and removed at the end."""
    as_root = os.geteuid() == 0
    user = {"user": "postgres", "group": "postgres", "extra_groups": []} if as_root else {}
    folder = Path(tempfile.mkdtemp(prefix="palestra-pg-", dir="/tmp"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = folder / "data"
    if as_root:
        shutil.chown(folder, "postgres", "postgres")

    def run(name, *arguments):
        argv = [str(programs() / name), *arguments]
        subprocess.run(argv, check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **user)

    try:
        run("initdb", "-D", str(data), "-U", "palestra", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1"
        run("pg_ctl", "-D", str(data), "-w", "-o", options, "-l", str(folder / "log"), "start")
        try:
            yield f"postgresql+psycopg://palestra@127.0.0.1:{port}"
        finally:
            run("pg_ctl", "-D", str(data), "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)
