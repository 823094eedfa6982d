"""The Master of hasty_master.py whose alerts wait less: run as `python -m tests.support.hasty_alerts ARGUMENTS...`.

Idle for a minute in place of 30, queued for 5 s in place of 10 min, a failed job is over after 5 s in place of an hour,
and what is gone for 3 s in place of 30 is over.
"""

from dataclasses import replace
from typing import Any, Final, cast

from tests.support import hasty_master
from windrow_master.watch import levels, rules
from windrow_proto.units import MINUTE, SECOND

SETTLE_NS: Final = 3 * SECOND
QUEUE_NS: Final = 5 * SECOND
FAILED_NS: Final = 5 * SECOND
OWN: Final = {"job.queued": {"duration_ns": QUEUE_NS}, "job.failed": {"lasts_ns": FAILED_NS}}


def main() -> None:
    """The daemon with its times changed."""
    table = cast(dict[str, rules.Rule], rules.RULES)
    for code, rule in list(table.items()):
        changed: dict[str, Any] = {"settle_ns": SETTLE_NS, **OWN.get(code, {})}
        table[code] = replace(rule, **changed)
    for name, value in {"IDLE_NS": MINUTE, "IDLE_EVERY_NS": 2 * SECOND}.items():
        assert isinstance(getattr(levels, name), int), name
        setattr(levels, name, value)
    hasty_master.main()


if __name__ == "__main__":
    main()
