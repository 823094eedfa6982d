"""A person at a shell: the command line in a home and a folder of their own, on a market that runs."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support import warm_windrow
from tests.support.rental import COMMAND_S, NO_CAPACITY, SETTLED_S, Renter, is_passing
from tests.support.stack import WINDROW, wait_for

END_S = 30.0
NO_MARKET: Final = {"url": "http://127.0.0.1:9", "token": "wt_none"}
Word = str | bytes | Path


@dataclass(frozen=True, slots=True)
class Said:
    """The end of a command. out, err: its standard streams as bytes."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """Its standard output; bytes that are no UTF-8 as Python keeps them."""
        return self.out.decode(errors="surrogateescape")

    @property
    def errors(self) -> str:
        """Its standard error in the same way."""
        return self.err.decode(errors="surrogateescape")

    def well(self) -> "Said":
        """The same; raises AssertionError unless it ended with 0."""
        assert self.code == 0, self
        return self


class Person:
    """Types commands in `here`, with `windrow` on the path and the account of a market's first user."""

    def __init__(self, renter: Renter | None, folder: Path) -> None:
        """renter: None where no market runs. folder: for the home and the folder they work in."""
        self._renter, self.home, self.here = renter, folder / "home", folder / "project"
        self.home.mkdir()
        self.here.mkdir()

    @property
    def renter(self) -> Renter:
        """The same by API; raises AssertionError where no market runs."""
        assert self._renter is not None, "this person has no market"
        return self._renter

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of their commands."""
        found = self._renter.stack.cli if self._renter else NO_MARKET
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "WINDROW_"))}
        path = f"{Path(WINDROW).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        own = {"WINDROW_URL": found["url"], "WINDROW_TOKEN": found["token"], "HOME": str(self.home), "PATH": path}
        return kept | own | more

    def windrow(self, *words: Word, **more: Any) -> Said:
        """`windrow WORDS...`, as `command` runs it."""
        return self.command(warm_windrow.command(), *words, **more)

    def shell(self, script: str, **more: Any) -> Said:
        """A line as it stands in a report."""
        return self.command("bash", "-c", script, **more)

    def command(
        self,
        *words: Word,
        given: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        within_s: float = COMMAND_S,
        **more: Any,
    ) -> Said:
        """Run it to its end; once more where this machine's host takes no work for a moment. given: standard input."""
        ends = time.monotonic() + SETTLED_S
        while True:
            done = subprocess.run(
                words, input=given, capture_output=True, timeout=within_s, check=False,
                cwd=cwd or self.here, env=self.environment(**(env or {})), **more,
            )  # fmt: skip
            said = Said(done.returncode, done.stdout, done.stderr)
            if said.code != NO_CAPACITY or not is_passing(said.errors) or time.monotonic() > ends:
                return said
            time.sleep(1)

    @contextmanager
    def started(self, *words: Word, env: Mapping[str, str] | None = None, **more: Any) -> Iterator["Typed"]:
        """`windrow WORDS...` beside the block; it is killed at the end unless it has ended."""
        given: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
        } | more
        own = self.environment(**(env or {}))
        process: subprocess.Popen[bytes] = subprocess.Popen([WINDROW, *words], cwd=self.here, env=own, **given)
        with process:
            try:
                yield Typed(process)
            finally:
                process.kill()

    def newest(self, *phases: str) -> dict[str, Any]:
        """The latest cluster, once it is in one of these phases."""
        wanted = phases or ("Running",)
        found: dict[str, Any] = wait_for(lambda: (c := self.renter.all("/clusters")[0]) and c["phase"] in wanted and c)
        return found


class Typed:
    """A command that runs."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.out = b""

    def until(self, text: bytes) -> bytes:
        """Read standard output until this stands in it; raises AssertionError at its end."""
        assert self.process.stdout is not None
        while text not in self.out:
            piece = os.read(self.process.stdout.fileno(), 65536)
            assert piece, (self.out, self.process.stderr and self.process.stderr.read())
            self.out += piece
        return self.out

    def signalled(self, number: signal.Signals) -> Said:
        """Send a signal and wait for the end."""
        self.process.send_signal(number)
        return self.end()

    def end(self, within_s: float = END_S) -> Said:
        """Wait for the end."""
        out, err = self.process.communicate(timeout=within_s)
        return Said(self.process.returncode, self.out + (out or b""), err or b"")
