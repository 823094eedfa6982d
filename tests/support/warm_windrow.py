"""`windrow` without its start: one process of a test run has loaded the command line, and each command is a fork of it.

The start of the command line takes 0.4 s of a processor, most commands a tenth of that. A command is a process of its
own, with the words, environment, folder, mask and standard streams of its caller, who gets its end and its exit code.
Its process group and its controlling terminal are others: tests of those, and of the start, run
`tests.support.stack.WINDROW` itself.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import io
import os
import pkgutil
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.support.stack import WINDROW
from tests.waiting import PATIENCE_S, poll

CLIENT: Final = Path(__file__).with_name("warm_client.py")
NAME: Final = "windrow"
LATE: Final = ("typer._adapters", "httpx2._client", "httpcore2._sync.connection_pool", "rich.table", "rich.live")
"""What nearly every command loads once it runs."""
OURS: Final = "/proc/thread-self/ns/net"
NETWORK: Final = os.readlink(OURS)
"""The network of this process, in which its forks are."""


def folder() -> Path:
    """A folder for the front of a PATH, with the program `windrow` in it: the shipped one where this thread has entered
    another network."""
    return _warm() if os.readlink(OURS) == NETWORK else Path(WINDROW).parent


@functools.cache
def _warm() -> Path:
    """The same with a process behind it that ends with this one."""
    where = Path(tempfile.mkdtemp(prefix="windrow-warm-"))
    program = where / NAME
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{CLIENT}" "{where}/line" "$@"\n')
    program.chmod(0o755)
    command = [sys.executable, "-m", __name__, str(where / "line")]
    path = os.pathsep.join(one for one in sys.path if one)
    # It ends, and takes the folder away, once nobody holds the other end of its standard input.
    server = subprocess.Popen(command, stdin=subprocess.PIPE, env=os.environ | {"PYTHONPATH": path})
    atexit.register(_end, server)
    poll((where / "line").exists, what="the command line is loaded")
    return where


def command() -> str:
    """The path of that program."""
    return str(folder() / NAME)


def _end(server: "subprocess.Popen[bytes]") -> None:
    assert server.stdin is not None
    server.stdin.close()
    server.wait(PATIENCE_S)


def serve(place: str) -> None:
    """Load the command line, and run each command that comes in a fork until standard input ends."""
    import windrow

    own = (found.name for found in pkgutil.walk_packages(windrow.__path__, "windrow."))
    for name in (*own, *LATE):
        if not name.startswith("windrow.worker") and not name.endswith("__main__"):
            importlib.import_module(name)
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{place}.new")
        listener.listen(64)
        os.rename(f"{place}.new", place)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks for the end of those that wait for a command
        while True:
            ready, _, _ = select.select([listener.fileno(), 0], [], [])
            if 0 in ready:
                shutil.rmtree(Path(place).parent)
                return
            line, _ = listener.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                listener.close()
                _answer(line)
            line.close()


def _answer(line: socket.socket) -> None:
    """One command, from its words to its end."""
    head, streams, _, _ = socket.recv_fds(line, 8, 3)
    data = b""
    while len(data) < int.from_bytes(head, "big"):
        data += line.recv(1 << 20)
    cwd, umask, count, *rest = data.split(b"\0")
    words, environment = rest[: int(count)], rest[int(count) :]
    pid = os.fork()
    if pid:
        for stream in (*streams, 0, 1):
            os.close(stream)
        with contextlib.suppress(OSError):  # whoever asked may be gone
            line.sendall(pid.to_bytes(8, "big"))
            ready, _, _ = select.select([line.fileno(), end := os.pidfd_open(pid)], [], [])
            if end not in ready:
                os.kill(pid, signal.SIGKILL)  # as whoever asked was
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            line.sendall(status.to_bytes(8, "big", signed=True))
        os._exit(0)
    line.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(cwd)
    os.umask(int(umask))
    os.environ.clear()
    os.environb.update(one.partition(b"=")[::2] for one in environment)
    _run([NAME, *map(os.fsdecode, words)])


def _run(words: list[str]) -> None:
    """As Python would start it with these words."""
    from windrow.cli.main import main

    random.seed()
    sys.argv = words
    sys.stdin = open(0, encoding="utf-8", errors="strict", closefd=False)  # noqa: SIM115 - until its end
    sys.stdout, sys.stderr = _stream(1, "strict"), _stream(2, "backslashreplace")
    main()


def _stream(number: int, errors: str) -> io.TextIOWrapper:
    raw = open(number, "wb", closefd=False)  # noqa: SIM115 - until its end
    is_at_once = bool(os.environ.get("PYTHONUNBUFFERED"))
    by_line = os.isatty(number) or number == 2
    return io.TextIOWrapper(raw, encoding="utf-8", errors=errors, line_buffering=by_line, write_through=is_at_once)


if __name__ == "__main__":
    serve(sys.argv[1])
