"""Cards of one class that are asked in the same second work at once, or one card answers for several."""

import pytest

from windrow_master.fleet.verdicts import Company
from windrow_master.verification.together import SPREAD_NS, Beside, Span, beside, judge
from windrow_proto.ids import GpuUuid
from windrow_proto.units import MILLISECOND, SECOND


def spans(*took_ns: int, apart_ns: int = 0) -> list[Span]:
    return [Span(n * apart_ns, one) for n, one in enumerate(took_ns)]


@pytest.mark.parametrize(
    ("found", "company"),
    [
        (spans(), Company.ALONE),
        (spans(5 * SECOND), Company.ALONE),
        (spans(*[5 * SECOND] * 7, 7 * SECOND), Company.TOGETHER),
        (spans(*(n * 5 * SECOND for n in range(1, 9))), Company.APART),
        (spans(*(n * 300 * MILLISECOND for n in range(1, 9))), Company.APART),
        (spans(100 * MILLISECOND, 100 * MILLISECOND + SPREAD_NS), Company.UNTOLD),
        (spans(100 * MILLISECOND, 101 * MILLISECOND + SPREAD_NS), Company.APART),
        (spans(5 * SECOND, 5 * SECOND, apart_ns=SPREAD_NS + 1), Company.UNTOLD),
    ],
)
def test_times_say_whether_cards_worked_at_once(found: list[Span], company: Company) -> None:
    assert judge(found) is company


def test_cards_of_different_classes_are_not_compared() -> None:
    fast, slow, other = GpuUuid("GPU-1"), GpuUuid("GPU-2"), GpuUuid("GPU-3")
    took = {fast: Span(0, SECOND), slow: Span(0, 9 * SECOND), other: Span(0, 10 * SECOND)}
    found = beside(took, {fast: "h100", slow: "t4", other: "t4"})
    pair = Beside(Company.TOGETHER, 2)
    assert found == {fast: Beside(Company.ALONE, 1), slow: pair, other: pair}
    assert pair.words == "2 cards of its class worked at once"
