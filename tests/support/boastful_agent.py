"""The shipped agent on a host that boasts: run as `python -m tests.support.boastful_agent ARGUMENTS...`.

Only what it says of its own count is changed, after each measurement of its line: ten times the rate, ten times the
bytes. What the relay signed goes along as it is, since the host cannot sign in its place.
"""

import sys
from dataclasses import replace
from typing import Any, Final

from windrow_agent.app import service
from windrow_agent.app.main import main
from windrow_agent.link.bandwidth_probe import measure
from windrow_proto.bandwidth import BandwidthResult
from windrow_proto.wire_host import decode_claim

BOAST: Final = 10


async def boast(*asked: Any) -> BandwidthResult:
    """Measure, and make ten times as much of it."""
    found = await measure(*asked)
    claim = decode_claim(found.access_signed)
    return replace(
        found,
        up_bits_per_s=BOAST * claim.up_bits_per_s,
        down_bits_per_s=BOAST * claim.down_bits_per_s,
        up_bytes=BOAST * claim.up_bytes,
        down_bytes=BOAST * claim.down_bytes,
    )


if __name__ == "__main__":
    assert vars(service)["measure"] is measure, "the name that the agent measures by"
    vars(service)["measure"] = boast
    sys.exit(main())
