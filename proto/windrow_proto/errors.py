"""One table of errors: a stable code, what it becomes in gRPC and HTTP, and a sentence for a person. Pure.

The docstring of a class is its default message. `retryable` says whether the same call may succeed later unchanged.
"""

from enum import StrEnum
from typing import ClassVar


class Fault(StrEnum):
    """Whose doing it was."""

    CALLER = "caller"
    WORLD = "world"
    OURS = "ours"


class WindrowError(Exception):
    """Something in Windrow failed. Look at the log of the daemon that answered, by the id in this message."""

    code: ClassVar[str] = "internal"
    grpc: ClassVar[str] = "INTERNAL"
    http: ClassVar[int] = 500
    fault: ClassVar[Fault] = Fault.OURS
    retryable: bool = False

    def __init__(
        self,
        detail: str | None = None,
        *,
        subject: str = "",
        retry_after_ns: int = 0,
    ) -> None:
        """retry_after_ns: when another try makes sense, from now; 0 where that is not known. It goes over the link."""
        self.detail = detail if detail is not None else (type(self).__doc__ or self.code).strip()
        self.subject = subject
        self.retry_after_ns = retry_after_ns
        super().__init__(f"{self.detail} [{self.code}{' ' + subject if subject else ''}]")


class InvalidInput(WindrowError):
    """The request is not valid. Nothing was changed; correct the named field and send it again."""

    code, grpc, http, fault = "invalid_input", "INVALID_ARGUMENT", 422, Fault.CALLER


class NotFound(WindrowError):
    """There is no object with this id, or it is not yours. List yours and try again."""

    code, grpc, http, fault = "not_found", "NOT_FOUND", 404, Fault.CALLER


class Unauthenticated(WindrowError):
    """Your token is missing or not valid. Sign in again (`windrow login`)."""

    code, grpc, http, fault = "unauthenticated", "UNAUTHENTICATED", 401, Fault.CALLER


class FactorRequired(Unauthenticated):
    """This user signs in with a second factor: the code of an authenticator app, or a recovery code."""

    code, grpc, http, fault = "second_factor_required", "UNAUTHENTICATED", 401, Fault.CALLER


class Misdirected(WindrowError):
    """The request names a host that this Master is not. Use the address that the Master gives."""

    code, grpc, http, fault = "misdirected", "INVALID_ARGUMENT", 421, Fault.CALLER


class Forbidden(WindrowError):
    """Your roles do not allow this. Ask an operator for the role that the message names."""

    code, grpc, http, fault = "forbidden", "PERMISSION_DENIED", 403, Fault.CALLER


class SignInAgain(Forbidden):
    """Your last sign-in is more than ten minutes ago. Give your password, a code of your app or a token again."""

    code, grpc, http, fault = "sign_in_again", "PERMISSION_DENIED", 403, Fault.CALLER


class AuthorisationPending(WindrowError):
    """Nobody has approved this device yet. Ask again after the interval."""

    code, grpc, http, fault, retryable = "authorization_pending", "FAILED_PRECONDITION", 400, Fault.CALLER, True


class SlowDown(AuthorisationPending):
    """This device asks too often. Wait five seconds longer between two requests from now on."""

    code = "slow_down"


class AccessDenied(WindrowError):
    """The sign-in of this device was refused. Begin again with `windrow login URL`."""

    code, grpc, http, fault = "access_denied", "PERMISSION_DENIED", 400, Fault.CALLER


class ExpiredToken(WindrowError):
    """The code of this device has expired or was used. Begin again with `windrow login URL`."""

    code, grpc, http, fault = "expired_token", "FAILED_PRECONDITION", 400, Fault.CALLER


class Conflict(WindrowError):
    """Somebody changed this in the meantime, or its state does not allow it. Read it again, then decide."""

    code, grpc, http, fault = "conflict", "FAILED_PRECONDITION", 409, Fault.CALLER


class AlreadyRegistered(WindrowError):
    """A resource with this resource_id is registered. Choose another one, or change the one that there is."""

    code, grpc, http, fault = "already_registered", "ALREADY_EXISTS", 400, Fault.CALLER


class SpendingLimitReached(Conflict):
    """This would pass a spending limit. Have the limit raised, or ask for less."""

    code = "spending_limit"


class QuotaExceeded(Conflict):
    """This would pass a quota. Wait until something has ended, ask for less, or have the quota raised."""

    code = "quota_exceeded"

    def __init__(self, detail: str | None = None, *, subject: str = "", is_possible: bool = True) -> None:
        """is_possible: there is room for it once something else has ended."""
        super().__init__(detail, subject=subject)
        self.retryable = is_possible


class IdempotencyMismatch(WindrowError):
    """This Idempotency-Key was used for a different request. Use a new key."""

    code, grpc, http, fault = "idempotency_mismatch", "FAILED_PRECONDITION", 409, Fault.CALLER


class NoCapacity(WindrowError):
    """No host can run this now. Change the request or wait."""

    code, grpc, http, fault, retryable = "no_capacity", "RESOURCE_EXHAUSTED", 409, Fault.WORLD, True


class InsufficientFunds(WindrowError):
    """The account cannot fund the first 15 minutes. Have an operator grant credits, or ask for less."""

    code, grpc, http, fault = "insufficient_funds", "FAILED_PRECONDITION", 402, Fault.CALLER


class TooLarge(WindrowError):
    """That is larger than the limit the message names. Nothing was changed; send less."""

    code, grpc, http, fault = "too_large", "RESOURCE_EXHAUSTED", 413, Fault.CALLER


class TooMany(WindrowError):
    """Too many at once. Wait for the time the answer names and try again."""

    code, grpc, http, fault, retryable = "too_many", "RESOURCE_EXHAUSTED", 429, Fault.CALLER, True


class Unavailable(WindrowError):
    """Not possible right now. Nothing was changed; the same call may succeed later."""

    code, grpc, http, fault, retryable = "unavailable", "UNAVAILABLE", 503, Fault.WORLD, True


class HostUnreachable(Unavailable):
    """The host is not connected. The command is kept until its time runs out and goes when the host is back."""

    code, grpc, http = "host_unreachable", "UNAVAILABLE", 503


class DeadlineExceeded(WindrowError):
    """The call did not end in time, and its outcome is not known. Look at the state before you repeat it."""

    code, grpc, http, fault = "deadline_exceeded", "DEADLINE_EXCEEDED", 504, Fault.WORLD


class LinkClosed(WindrowError):
    """The stream has ended. The other side reconnects by itself."""

    code, grpc, http, fault, retryable = "link_closed", "UNAVAILABLE", 503, Fault.WORLD, True


class KeptBack(LinkClosed):
    """An Access withheld messages. The stream was ended; the host connects through another Access."""

    code = "kept_back"


class BadProof(WindrowError):
    """A message's proof does not hold. It was dropped and counted; nothing was changed."""

    code, grpc, http, fault = "bad_proof", "UNAUTHENTICATED", 401, Fault.CALLER


class Banned(WindrowError):
    """This identity is quarantined or retired. Ask the operator of this Master."""

    code, grpc, http, fault = "banned", "PERMISSION_DENIED", 403, Fault.CALLER


class JoinTokenRefused(WindrowError):
    """The join token was used, has expired or was never issued. Make a new one with `windrow token add --join`."""

    code, grpc, http, fault = "join_token_refused", "PERMISSION_DENIED", 403, Fault.CALLER


class CertificateRefused(WindrowError):
    """The certificate is expired, foreign or superseded. Renew it or join again."""

    code, grpc, http, fault = "certificate_refused", "UNAUTHENTICATED", 401, Fault.CALLER


class Fenced(WindrowError):
    """A newer holder or a newer Master has taken over; this command is too old and was refused."""

    code, grpc, http, fault = "fenced", "FAILED_PRECONDITION", 409, Fault.WORLD


class Expired(WindrowError):
    """The command came after its not-after time and was refused. Nothing ran."""

    code, grpc, http, fault = "expired", "FAILED_PRECONDITION", 409, Fault.WORLD


class ImageUnavailable(WindrowError):
    """The image could not be found or pulled on the host. Check its name and the host's access to its registry."""

    code, grpc, http, fault = "image_unavailable", "FAILED_PRECONDITION", 422, Fault.CALLER


class RuntimeUnavailable(WindrowError):
    """The host cannot run this kind of workload now. `windrow host show` lists its runtimes and conditions."""

    code, grpc, http, fault, retryable = "runtime_unavailable", "UNAVAILABLE", 503, Fault.WORLD, True


class WorkloadFailed(WindrowError):
    """The workload did not start or ended badly. Its log says more: `windrow cluster logs`."""

    code, grpc, http, fault = "workload_failed", "ABORTED", 409, Fault.CALLER


class StorageFailed(WindrowError):
    """The disk refused a write. Nothing was acknowledged; free space or replace the disk, then restart the daemon."""

    code, grpc, http, fault, retryable = "storage_failed", "UNAVAILABLE", 503, Fault.WORLD, True


class DiskFull(StorageFailed):
    """The Master's disk is full: it takes no new work until space is free. Free some; the Master then "
    "goes on by itself."""

    code, grpc, http, fault, retryable = "disk_full", "UNAVAILABLE", 503, Fault.WORLD, True


def _all(root: type[WindrowError]) -> list[type[WindrowError]]:
    found = [root]
    for child in root.__subclasses__():
        found += _all(child)
    return found


def table() -> dict[str, type[WindrowError]]:
    """Code to class, for every error that has a code of its own; a kind of one that has none is told as that one."""
    return {error.code: error for error in _all(WindrowError) if "code" in vars(error)}


def from_code(code: str, detail: str = "", subject: str = "") -> WindrowError:
    """The error a peer named; an unknown code becomes the root error with the code in its text."""
    known = table().get(code)
    if known is None:
        return WindrowError(f"{detail or 'unknown error'} (code {code[:64]})", subject=subject)
    return known(detail or None, subject=subject)
