"""How logs say that a bug was met which ended only what met it."""

from typing import Final

CRASHED: Final = "_crashed"
"""How the names of events end that say: a bug was met, it ended what met it, and all else goes on."""
