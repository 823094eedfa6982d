"""Decides when a certificate is due for renewal. Pure."""


def is_due(not_before_ns: int, not_after_ns: int, wall_ns: int) -> bool:
    """True if half of a certificate's life has passed; a clock before its beginning renews nothing."""
    return wall_ns - not_before_ns >= (not_after_ns - not_before_ns) // 2
