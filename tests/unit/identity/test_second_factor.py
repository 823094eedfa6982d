"""The second factor: codes of RFC 6238, each once, and recovery codes."""

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from windrow_master.identity.people import Factor, UserId
from windrow_master.identity.second_factor import (
    RECOVERY_BYTES,
    RECOVERY_CODES,
    code_sha256,
    recovery_codes,
    secret_text,
    uri_of,
    used_with,
)
from windrow_proto.units import SECOND

SECRET = b"12345678901234567890"
"""Of the test vectors of RFC 6238, appendix B, whose last six digits are compared."""
FRESH = Factor(UserId("user_1"), b"", confirmed_at_ns=1)


@pytest.mark.parametrize(
    ("at_s", "code"),
    [(59, "287082"), (1_111_111_109, "081804"), (1_234_567_890, "005924"), (20_000_000_000, "353130")],
)
def test_a_code_of_the_standard_is_right(at_s: int, code: str) -> None:
    used = used_with(FRESH, SECRET, code, at_s * SECOND)
    assert used == replace(FRESH, last_step=at_s // 30)


def test_a_code_holds_a_step_before_and_after_its_own_and_no_longer() -> None:
    app = TOTP(SECRET, 6, hashes.SHA1(), 30)
    code = app.generate(3_000).decode()
    found = {at: used_with(FRESH, SECRET, code, at * SECOND) is not None for at in (2_969, 2_970, 3_059, 3_060)}
    assert found == {2_969: False, 2_970: True, 3_059: True, 3_060: False}


def test_a_code_works_once_and_so_does_no_earlier_one() -> None:
    app = TOTP(SECRET, 6, hashes.SHA1(), 30)
    used = used_with(FRESH, SECRET, app.generate(3_000).decode(), 3_000 * SECOND)
    assert used is not None
    assert used_with(used, SECRET, app.generate(3_000).decode(), 3_001 * SECOND) is None
    assert used_with(used, SECRET, app.generate(2_970).decode(), 3_001 * SECOND) is None
    assert used_with(used, SECRET, app.generate(3_030).decode(), 3_031 * SECOND) is not None


def test_a_recovery_code_works_once_in_any_case_with_or_without_its_dashes() -> None:
    codes = recovery_codes(bytes(range(RECOVERY_CODES * RECOVERY_BYTES)))
    assert len(set(codes)) == RECOVERY_CODES and all(len(code) == 19 for code in codes)
    factor = replace(FRESH, recovery=tuple(map(code_sha256, codes)))
    used = used_with(factor, SECRET, codes[3].lower().replace("-", " "), 0)
    assert used is not None and len(used.recovery) == RECOVERY_CODES - 1
    assert used_with(used, SECRET, codes[3], 0) is None
    assert used_with(replace(factor, confirmed_at_ns=None), SECRET, codes[3], 0) is None


@pytest.mark.parametrize("code", ["", "12345", "1234567", "12345x", "١٢٣٤٥٦", "000000000000000000000"])
def test_what_is_no_code_is_wrong(code: str) -> None:
    assert used_with(FRESH, SECRET, code, 59 * SECOND) is None


def test_an_app_is_told_the_secret_the_market_and_the_user() -> None:
    assert secret_text(SECRET) == "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
    assert uri_of(SECRET, "ada+x@example.org", "Windrow") == (
        "otpauth://totp/Windrow%3Aada%2Bx%40example.org?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
        "&issuer=Windrow&digits=6&period=30"
    )
