"""The shipped Master whose purchases wait less: run as `python -m tests.support.hasty_purchases ARGUMENTS...`.

Only how long it waits is changed, so that thirty purchases begin, end and are gone within minutes.
"""

from functools import partial
from typing import Any, Final

from windrow_master.hybrid import sweep as command
from windrow_master.hybrid.backends.ec2 import Ec2
from windrow_master.hybrid.purchases import controller, costs, hosts, model, service
from windrow_proto.units import MINUTE, SECOND

ORPHAN_TTL_S: Final = 60
"""Longer than a Master needs to be there again, and for its agents to hear it, on a busy machine."""
_RULES: Final = {"call_ns": 5 * SECOND, "late_ns": 2 * SECOND, "margin_ns": 2 * SECOND, "boot_ns": 3 * MINUTE}
_RESTS: Final = {"idle_ns": 2 * MINUTE, "rest_ns": MINUTE, "drain_ns": 5 * SECOND}
HASTE: Final[tuple[tuple[object, str, Any], ...]] = (
    (controller, "LOOK_EVERY_NS", SECOND),
    (controller, "SWEEP_EVERY_NS", 10 * SECOND),
    (service, "Rules", partial(model.Rules, **_RULES, **_RESTS)),
    (Ec2, "list_lag_ns", 3 * SECOND),
    (hosts, "ORPHAN_TTL_NS", ORPHAN_TTL_S * SECOND),
    (model, "OVERRUN_S", ORPHAN_TTL_S),
    (costs, "OVERRUN_S", ORPHAN_TTL_S),
    (command, "AGAIN_NS", SECOND),
)


def main() -> None:
    """The daemon with its times changed."""
    for owner, name, value in HASTE:
        assert hasattr(owner, name), name
        setattr(owner, name, value)
    from windrow_master.__main__ import main as run

    run()


if __name__ == "__main__":
    main()
