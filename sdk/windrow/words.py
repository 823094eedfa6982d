"""Says counts and spans in words, for people; programs have them whole in JSON. Pure."""


def counted(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def seconds_text(seconds: float | str) -> str:
    """Seconds with at most three digits that count: `1.62 s`, `3601 s`."""
    value = float(seconds)
    return f"{value:.0f} s" if value >= 100 else f"{value:.3g} s"
