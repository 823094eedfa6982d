"""Attacks by strangers, hosts and neighbours, each played against the product: `make hostile`.

A test names the row of rows.py that it guards: `@pytest.mark.row("F1")`. Short forms are part of `make test`; `make
hostile` plays the long ones.
"""

import os

IS_LONG = os.environ.get("HOSTILE", "") not in {"", "0"}
"""True under `make hostile`: full lengths, full sizes."""
