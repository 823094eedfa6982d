"""What strangers met: one test per row of bug_reports.tsv (B-...) and mission_faults.tsv (M-...): `make cases`.

A test names its rows: `@pytest.mark.case("B-A2")`; where another suite plays a row already, its test has the mark.
Those of this folder run under `make cases`; what takes a second or two is marked `quick` and runs in `make test`, too.
"""

import os

IS_LONG = os.environ.get("CASES", "") not in {"", "0"}
"""True under `make cases`: every row."""
