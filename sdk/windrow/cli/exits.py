"""Exit codes of the `windrow` command: one table, which `windrow --help` and the README files print. Pure."""

from typing import Final

from windrow.errors import (
    ApiProblem,
    InvalidInput,
    MasterUnreachable,
    NameTaken,
    NoMaster,
    NoPlace,
    NotFound,
    NotSignedIn,
    WaitTimedOut,
    WindrowClientError,
)

EXIT_OK, EXIT_FAILURE, EXIT_USAGE, EXIT_NOT_FOUND, EXIT_AUTH, EXIT_CONFLICT, EXIT_UNAVAILABLE = 0, 1, 2, 3, 4, 5, 6
EXIT_TIMED_OUT: Final = 124
"""As `timeout` of the GNU core utilities has it."""
EXIT_SIGNAL: Final = 128
"""Plus the number of the signal, as shells have it."""

MEANINGS: Final = {
    EXIT_OK: "done",
    EXIT_FAILURE: "failed",
    EXIT_USAGE: "the command line or the request is not valid",
    EXIT_NOT_FOUND: "not found",
    EXIT_AUTH: "not signed in, or not allowed",
    EXIT_CONFLICT: "no capacity, no funds, or a conflict with the present state",
    EXIT_UNAVAILABLE: "the Master or the host does not answer; try again",
    EXIT_TIMED_OUT: "waited too long",
    EXIT_SIGNAL + 2: "stopped by Ctrl-C (128 and the number of the signal)",
}
OF_THE_WORK: Final = "run, cluster exec, job wait and job submit --follow exit as the program that they ran."
_BY_STATUS: Final = {
    **dict.fromkeys((400, 405, 413, 415, 421, 422), EXIT_USAGE),
    **dict.fromkeys((401, 403), EXIT_AUTH),
    404: EXIT_NOT_FOUND,
    **dict.fromkeys((402, 409), EXIT_CONFLICT),
    **dict.fromkeys((429, 502, 503, 504), EXIT_UNAVAILABLE),
}
_BY_ERROR: Final = (
    (WaitTimedOut, EXIT_TIMED_OUT),
    (MasterUnreachable, EXIT_UNAVAILABLE),
    (NotFound, EXIT_NOT_FOUND),
    (InvalidInput, EXIT_USAGE),
    (NotSignedIn, EXIT_AUTH),
    (NameTaken, EXIT_CONFLICT),
    (NoPlace, EXIT_CONFLICT),
    (NoMaster, EXIT_USAGE),
)


def exit_code(error: WindrowClientError) -> int:
    """Returns the exit code of a command that this error ended."""
    if isinstance(error, ApiProblem):
        return _BY_STATUS.get(error.status, EXIT_FAILURE)
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), EXIT_FAILURE)


def table() -> str:
    """Returns the table as one sentence."""
    codes = ", ".join(f"{code} {meaning}" for code, meaning in MEANINGS.items())
    return f"Exit codes: {codes}. {OF_THE_WORK}"
