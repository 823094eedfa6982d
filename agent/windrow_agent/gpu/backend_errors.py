"""Turns an exception of a GPU backend into an answer: our own bug becomes a condition and does not end the agent."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class FailedCall:
    """The backend raised."""

    detail: str


def answered(call: str, work: Callable[[], object]) -> object:
    """Returns the backend's answer, or FailedCall. call: the name of the call, for the log."""
    try:
        return work()
    except BlockingIOError:
        raise  # not now, says a simulated one
    except Exception as error:  # the top of what runs on the GPUs' thread
        log.exception("gpu_backend_raised", call=call)
        return FailedCall(f"{type(error).__name__} while the agent read the GPUs")
