"""Standard streams of the command: the output of programs, input that nobody reads, and streams that are closed or
full."""

import errno
import fcntl
import os
import stat
import struct
import sys
import termios
from typing import Annotated, Final

import typer

from windrow.cli.exits import EXIT_FAILURE
from windrow.cli.output import print_problem, say
from windrow.cli.terminal_text import RESET, TerminalText
from windrow.errors import InvalidInput

UNSENT: Final = (
    "Standard input is not sent to the program. Put the data into a file of this folder; to read nothing: </dev/null"
)
REFUSED: Final = (
    "Standard input cannot be sent through exec, so the command was not run. A machine with SSH takes it: "
    "windrow cluster ssh CLUSTER -- COMMAND. Else use a volume, or a file in the folder that `windrow run` sends. "
    "To read nothing: </dev/null"
)
UNWRITTEN: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})
"""What the system says of a file that takes no more; where no file is named it is standard output."""


def have_streams() -> None:
    """Open what the caller has closed (`>&-`): what is written there is thrown away, as the caller wants it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  # as long as the process lives


def unwritten(error: OSError) -> str:
    """Says that standard output could not be written."""
    return f"Standard output cannot be written: {error.strerror}."


def flushed(code: int) -> int:
    """Writes what is left for standard output. Returns the exit code, which is not 0 where it could not be written."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python would try again at its end, and say so in its own words.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno != errno.EPIPE:
            print_problem(unwritten(error))
        return code or EXIT_FAILURE
    return code


Raw = Annotated[
    bool, typer.Option("--raw", help="On a terminal, print the program's control sequences too, not its colours alone.")
]


class ProgramOutput:
    """Passes on what a program wrote. is_beside: to standard error, because standard output has a document alone.
    is_raw: on a terminal, too, as it is; else colours alone pass of what a terminal obeys."""

    def __init__(self, is_beside: bool = False, is_raw: bool = True) -> None:
        self._is_beside, self._is_line_open = is_beside, False
        self._text = None if is_raw or not sys.stdout.isatty() else TerminalText()

    def write(self, data: bytes, stream: int = 1) -> None:
        """Writes a piece at once. stream: 1 standard output, 2 standard error."""
        target = sys.stderr if stream == 2 or self._is_beside else sys.stdout
        target.buffer.write(data if self._text is None else self._text.clean(data))
        target.buffer.flush()
        self._is_line_open = not data.endswith(b"\n") if data else self._is_line_open

    def end_colours(self) -> None:
        """Takes back a colour that the program has left."""
        if self._text is not None and self._text.has_colours:
            sys.stdout.buffer.write(RESET)
            sys.stdout.buffer.flush()

    def end(self) -> None:
        """Begins a new line on a terminal, where the program left one open: ours come next."""
        if self._is_line_open and sys.stderr.isatty() and (self._is_beside or sys.stdout.isatty()):
            sys.stderr.write("\n")
        self._is_line_open = False


def say_unsent_input() -> bool:
    """Says so where data waits on standard input, which no program on a host is given. Returns whether it did."""
    if not _has_input():
        return False
    say(f"  {UNSENT}")
    return True


def refuse_input() -> None:
    """Raises InvalidInput where data waits on standard input, which the program would do without."""
    if _has_input():
        raise InvalidInput(REFUSED)


def _has_input() -> bool:
    """True if data waits on standard input now: in a file or a pipe. A terminal waits for a person."""
    try:
        facts = os.fstat(0)
        if stat.S_ISREG(facts.st_mode):
            return os.lseek(0, 0, os.SEEK_CUR) < facts.st_size
        if not stat.S_ISFIFO(facts.st_mode) and not stat.S_ISSOCK(facts.st_mode):
            return False
        (count,) = struct.unpack("i", fcntl.ioctl(0, termios.FIONREAD, b"\0" * 4))
    except OSError:
        return False
    return bool(count > 0)
