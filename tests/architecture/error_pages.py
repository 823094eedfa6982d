"""Writes docs/errors.md, the page of error codes: `python -m tests.architecture.error_pages`."""

import textwrap
from pathlib import Path
from typing import Final

from windrow.explained import PARAGRAPHS
from windrow_proto.errors import WindrowError, table

PAGE: Final = Path(__file__).parents[2] / "docs" / "errors.md"
HEAD: Final = """# Errors

What each error code means, and what to do. The command ends an error with its code and the id of the request, the
console shows both, and the API has them as `code` and `request_id` of its problem documents. `windrow explain CODE`
prints the same paragraph. `make conditions` writes this page from `sdk/windrow/explained.py`; change it there.

`again` says whether the same call may succeed later unchanged.
"""


def page() -> str:
    """The page: a heading for each code, in the order of the Master's table."""
    return HEAD + "".join(_section(code, error) for code, error in sorted(table().items()))


def _section(code: str, error: type[WindrowError]) -> str:
    again = "again: yes" if error.retryable else "again: no"
    paragraph = textwrap.fill(PARAGRAPHS[code], 120, break_on_hyphens=False, break_long_words=False)
    return f"\n## {code}\n\nHTTP {error.http}, {again}.\n\n{paragraph}\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
