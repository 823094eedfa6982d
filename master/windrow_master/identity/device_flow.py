"""Decides how a device is signed in by a code that a person confirms in a browser (RFC 8628). Pure.

begin ─▶ waiting ─▶ approved ─▶ the device gets its token, once
             └────▶ refused
each ends after LIFE_NS
"""

import hashlib
from dataclasses import replace
from typing import Final

from windrow_master.identity.model import DeviceCode, DeviceState
from windrow_proto.errors import (
    AccessDenied,
    AuthorisationPending,
    Conflict,
    ExpiredToken,
    NotFound,
    SlowDown,
    WindrowError,
)
from windrow_proto.units import DAY, MINUTE, SECOND

LIFE_NS: Final = 10 * MINUTE
INTERVAL_NS: Final = 5 * SECOND
"""Between two questions of a device; each that comes earlier makes it as much longer (RFC 8628, 3.5)."""
TOKEN_LIFE_NS: Final = 30 * DAY
DEVICE_PREFIX: Final = "wd_"
ALPHABET: Final = "BCDFGHJKLMNPQRSTVWXZ"
"""Consonants, which are not mistaken for digits and make no words (RFC 8628, 6.1)."""
LETTERS: Final = 8
CODE_BYTES: Final = 16
"""Of chance for one user code: far more than its 34 bits, so that no letter comes more often."""
OPEN_MAX: Final = 10
"""Requests from one network at a time."""
OPEN_MAX_TOGETHER: Final = 1_000
NO_CODE: Final = "There is no such code, or it has expired. Compare it with the one that the device shows."


def user_code(drawn: bytes) -> str:
    """The code that a person types, as ABCD-EFGH. drawn: CODE_BYTES random bytes."""
    number, letters = int.from_bytes(drawn, "big"), ""
    for _ in range(LETTERS):
        number, rest = divmod(number, len(ALPHABET))
        letters += ALPHABET[rest]
    return f"{letters[:4]}-{letters[4:]}"


def user_sha256(typed: str) -> bytes:
    """The hash by which a user code is known, in any case and with or without its dash. Raises NotFound for what is
    none."""
    letters = "".join(one for one in typed.upper() if one not in "- ")
    if len(letters) != LETTERS or set(letters) - set(ALPHABET):
        raise NotFound(NO_CODE, subject="user_code")
    return hashlib.sha256(letters.encode()).digest()


def check_open(code: DeviceCode | None, now_ns: int) -> DeviceCode:
    """The request that a person decides about. Raises NotFound, Conflict where it was decided already."""
    if code is None or now_ns >= code.expires_at_ns:
        raise NotFound(NO_CODE, subject="user_code")
    if code.state is not DeviceState.WAITING:
        raise Conflict("Somebody has decided about this device already. Begin again there.", subject="user_code")
    return code


def judge_question(code: DeviceCode | None, now_ns: int) -> tuple[DeviceCode | None, WindrowError | None]:
    """The request after a question of its device, None where it is over, and the refusal; no refusal: it gets its
    token."""
    if code is None or now_ns >= code.expires_at_ns:
        return None, ExpiredToken()
    if code.state is DeviceState.REFUSED:
        return None, AccessDenied()
    if code.state is DeviceState.APPROVED:
        return None, None
    if code.asked_at_ns is not None and now_ns - code.asked_at_ns < code.interval_ns:
        return replace(code, asked_at_ns=now_ns, interval_ns=code.interval_ns + INTERVAL_NS), SlowDown()
    return replace(code, asked_at_ns=now_ns), AuthorisationPending()
