"""Checks codes of an authenticator app (TOTP, RFC 6238) and recovery codes. Pure.

A code holds for its 30 seconds and those before and after it, and works once: its step, or an earlier one, is refused
from then on.
"""

import base64
import hashlib
import hmac
import re
from dataclasses import replace
from typing import Final
from urllib.parse import quote, urlencode

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.twofactor.hotp import HOTP

from windrow_master.identity.people import Factor
from windrow_proto.units import SECOND

STEP_S: Final = 30
DRIFT: Final = 1
"""Steps by which the clock of the app may be off, either way."""
SECRET_BYTES: Final = 20
"""Of SHA-1, which all apps know; RFC 4226 asks for 160 bits."""
DIGITS: Final = 6
RECOVERY_CODES: Final = 10
RECOVERY_BYTES: Final = 10
PURPOSE: Final = "second factor of "
"""For which a secret is sealed; the user's id follows."""
_CODE: Final = re.compile(r"\d{6}")


def secret_text(secret: bytes) -> str:
    """The secret as apps take it by hand."""
    return base64.b32encode(secret).decode().rstrip("=")


def uri_of(secret: bytes, user: str, market: str) -> str:
    """The address that a QR code holds for an app. user, market: what the app shows."""
    label = quote(f"{market}:{user}")
    return f"otpauth://totp/{label}?" + urlencode(
        {"secret": secret_text(secret), "issuer": market, "digits": DIGITS, "period": STEP_S}
    )


def used_with(factor: Factor, secret: bytes, code: str, now_ns: int) -> Factor | None:
    """The factor after this code of its app or this recovery code; None where it is wrong, or was used before."""
    text = code.replace(" ", "").replace("-", "")
    if _CODE.fullmatch(text):
        step = _step_of(secret, text, now_ns)
        return None if step is None or step <= factor.last_step else replace(factor, last_step=step)
    digest = code_sha256(text)
    if factor.confirmed_at_ns is None or digest not in factor.recovery:
        return None
    return replace(factor, recovery=tuple(one for one in factor.recovery if one != digest))


def _step_of(secret: bytes, code: str, now_ns: int) -> int | None:
    app = HOTP(secret, DIGITS, hashes.SHA1())  # as RFC 6238 has it; it is a MAC here
    now = now_ns // (STEP_S * SECOND)
    steps = range(max(0, now - DRIFT), now + DRIFT + 1)
    return next((step for step in steps if hmac.compare_digest(app.generate(step), code.encode())), None)


def recovery_codes(drawn: bytes) -> list[str]:
    """The codes of RECOVERY_CODES * RECOVERY_BYTES random bytes, each in groups of four."""
    texts = (base64.b32encode(drawn[at : at + RECOVERY_BYTES]).decode() for at in range(0, len(drawn), RECOVERY_BYTES))
    return ["-".join(text[at : at + 4] for at in range(0, len(text), 4)) for text in texts]


def code_sha256(code: str) -> str:
    """The hash by which a recovery code is known, in any case of its letters and without its dashes."""
    return hashlib.sha256(code.replace("-", "").replace(" ", "").upper().encode()).hexdigest()
