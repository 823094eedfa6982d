"""What can go wrong for a renter, as exceptions: the Master's problem documents and our own sentences."""

from typing import Any


class WindrowClientError(Exception):
    """Something did not work. The message says what, to which id, and what to do next."""


class NoMaster(WindrowClientError):
    """No Master is configured here. Run `windrow up` in this folder, or `windrow login URL`."""

    def __init__(self) -> None:
        super().__init__((type(self).__doc__ or "").strip())


class MasterUnreachable(WindrowClientError):
    """The Master did not answer in time."""


class WaitTimedOut(WindrowClientError):
    """The wait ended before what was waited for; it may still happen."""


class ApiProblem(WindrowClientError):
    """The Master said no (RFC 9457 problem details).

    status: HTTP status; code: the stable code of the errors table; reasons: one entry per host where there are any.
    """

    def __init__(self, status: int, document: dict[str, Any]) -> None:
        self.status = status
        self.code = str(document.get("code", "internal"))
        self.detail = str(document.get("detail") or document.get("title") or f"HTTP {status}")
        self.request_id = str(document.get("request_id") or "")
        self.retryable = bool(document.get("retryable", False))
        self.reasons: list[Any] = list(document.get("reasons") or [])
        super().__init__(self.detail)


class TunnelRefused(WindrowClientError):
    """A tunnel could not be opened."""


class TunnelBroken(WindrowClientError):
    """A tunnel ended before both directions had."""


class LocalCut(TunnelBroken):
    """Whoever had connected on this machine cut the connection."""
