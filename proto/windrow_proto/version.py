"""The version of Windrow that the daemons say; every pyproject.toml has the same."""

from typing import Final

VERSION: Final = "0.1.0"
