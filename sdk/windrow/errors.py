"""Errors that a renter meets, as exceptions: the Master's problem documents and our own sentences."""

from typing import Any


class WindrowClientError(Exception):
    """Something did not work. The message says what, to which id, and what to do next."""


class NotFound(WindrowClientError):
    """Nothing here has this name or id."""


class InvalidInput(WindrowClientError):
    """What was written is not valid. The message names it and the rule; nothing was sent."""


class NotSignedIn(WindrowClientError):
    """What was given as a token is none; nothing was sent."""


class NameTaken(WindrowClientError):
    """Something that goes on has this name already; nothing was made."""


class NoMaster(WindrowClientError):
    """No Master is configured here. Run `windrow up` in this folder, or `windrow login URL`."""

    def __init__(self) -> None:
        super().__init__((type(self).__doc__ or "").strip())


class MasterUnreachable(WindrowClientError):
    """The Master did not answer in time."""


class WaitTimedOut(WindrowClientError):
    """The wait ended before what was waited for; it may still happen."""


def refusal_lines(document: dict[str, Any]) -> list[str]:
    """Returns the reasons of a problem or of a refusal, and then what would fit, a line each."""
    found = [*(document.get("reasons") or ()), *(document.get("ways") or ())]
    return [_line(one) if isinstance(one, dict) else str(one) for one in found]


def _line(reason: dict[str, Any]) -> str:
    if reason.get("text"):
        return str(reason["text"])
    about = reason.get("host_name") or reason.get("field")
    return f"{about}: {reason.get('reason')}" if about else str(reason.get("reason"))


class ApiProblem(WindrowClientError):
    """The Master said no (RFC 9457 problem details).

    status: HTTP status; code: the stable code of the errors table; subject: the id or field that it is about;
    reasons, ways: as the Master lists them, where there are any: why, and which change of the request would fit;
    lines: the same as text; retry_after_s: when it said that another try makes sense, in seconds from now, else 0.
    """

    def __init__(self, status: int, document: dict[str, Any], retry_after_s: float = 0) -> None:
        self.status = status
        self.retry_after_s = retry_after_s
        self.code = str(document.get("code", "internal"))
        self.detail = str(document.get("detail") or document.get("title") or f"HTTP {status}")
        self.subject = str(document.get("subject") or "")
        self.request_id = str(document.get("request_id") or "")
        self.retryable = bool(document.get("retryable", False))
        self.reasons: list[Any] = list(document.get("reasons") or [])
        self.ways: list[Any] = list(document.get("ways") or [])
        self.lines = refusal_lines(document)
        super().__init__("\n  ".join([self.detail, *self.lines]))


class NoPlace(WindrowClientError):
    """No place can start a job now; the text has the reasons."""


class TunnelRefused(WindrowClientError):
    """A tunnel could not be opened."""


class AccessRefused(TunnelRefused):
    """An Access does not answer, or does not say whether it joins a tunnel. Another one may."""


class TunnelBroken(WindrowClientError):
    """A tunnel ended before both directions had."""


class LocalCut(TunnelBroken):
    """Whoever had connected on this machine cut the connection."""


class FunctionError(WindrowClientError):
    """A function could not be run on a cluster, or its end could not be brought back."""


class PythonMismatch(FunctionError):
    """The host's Python is another than this one; arguments and results would not mean the same."""


class WrongSecret(FunctionError):
    """What listens where the worker should is not it, or does not take our secret."""


class WorkerRefused(FunctionError):
    """The worker did not do what it was asked. code: stable, for programs."""

    def __init__(self, code: str, text: str) -> None:
        self.code = code
        super().__init__(text)


class LineBroken(FunctionError):
    """The connection to the worker ended. Runs go on: `windrow.attach(run_id)`."""


class CannotSend(FunctionError):
    """The function, its arguments or its folder cannot be sent as they are."""


class ResultLost(FunctionError):
    """The call ended well and its result could not be brought back: it cannot be pickled, or is too large."""


class UntrustedResult(FunctionError):
    """The result holds more than plain data, and the host is not trusted to make such objects here."""


class RunDied(FunctionError):
    """The process of the call ended before the call did."""


class RunCancelled(FunctionError):
    """The call was cancelled."""


class RunTimedOut(FunctionError):
    """The call was ended by its time limit."""


class RemoteError(FunctionError):
    """The function raised something that cannot be made here. type_name: what; the remote traceback is its cause."""

    def __init__(self, type_name: str, message: str) -> None:
        self.type_name = type_name
        super().__init__(f"{type_name}: {message}")


class RemoteTraceback(Exception):
    """The traceback on the host; the cause of what a call raises."""

    def __str__(self) -> str:
        return f"\n\n{self.args[0]}"
