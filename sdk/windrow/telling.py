"""Prints a program's progress for the person in front of it, on standard error."""

import sys
from contextlib import suppress


def tell(text: str) -> None:
    """One line; nothing where nobody can read it."""
    shown = "".join(one if one.isprintable() else "\ufffd" for one in text)
    with suppress(OSError, ValueError, AttributeError):
        print(shown, file=sys.stderr, flush=True)
