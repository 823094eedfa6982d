"""Distance of an Access: what a ping takes for the line's own time."""

from collections.abc import Sequence

import pytest

from windrow_proto import link_warm
from windrow_proto.errors import LinkClosed
from windrow_proto.units import SECOND
from windrow_proto.v1 import services_pb2


class Line:
    """A loop whose clock moves by the round trips alone. One longer than the deadline is not answered."""

    def __init__(self, *trips_ms: float) -> None:
        self.trips_ms, self.now_s, self.asked = list(trips_ms), 0.0, 0

    def time(self) -> float:
        return self.now_s

    async def ask(self, request: services_pb2.PingRequest) -> services_pb2.PingReply:
        self.now_s += self.trips_ms[self.asked] / 1000
        self.asked += 1
        if self.now_s > 1:
            raise TimeoutError
        return services_pb2.PingReply(nonce=request.nonce)


async def _measured(monkeypatch: pytest.MonkeyPatch, *trips_ms: float) -> tuple[float, int]:
    line = Line(*trips_ms)
    with monkeypatch.context() as patched:
        patched.setattr(link_warm, "now_s", line.time)
        answer = await link_warm.pinged(line.ask, SECOND)
    return round(answer.rtt_ns / 1e6, 3), line.asked


@pytest.mark.parametrize(
    ("trips_ms", "shortest_ms", "asked"),
    [
        ((200, 50, 51), 50, 3),  # two agree: that is the line; the first has the handshake
        ((200, 80, 50, 52), 50, 4),
        ((200, 0.9, 0.5), 0.5, 3),  # less than anybody notices
        ((200, 90, 50, 70, 60, 55), 50, 6),  # it stays busy: so many and no more
        ((200, 90, 50, 900), 50, 4),  # the deadline: with what there is
    ],
)
async def test_it_is_asked_until_two_agree_and_the_shortest_counts(
    monkeypatch: pytest.MonkeyPatch, trips_ms: Sequence[float], shortest_ms: float, asked: int
) -> None:
    assert await _measured(monkeypatch, *trips_ms) == (shortest_ms, asked)


async def test_who_does_not_answer_thrice_in_time_has_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LinkClosed, match=r"within 1\.0 s"):
        await _measured(monkeypatch, 200, 90, 900)
