"""What strangers met: one test per row of bug_reports.tsv (B-...) and mission_faults.tsv (M-...): `make cases`.

A test names its rows: `@pytest.mark.case("B-A2")`; where another suite plays a row already, its test has the mark.
Tests of this folder run under `make cases`; those that take a second or two are marked `quick` and run in `make test`,
too.
"""

import os

IS_LONG = os.environ.get("CASES", "") not in {"", "0"}
"""True under `make cases`: every row."""
