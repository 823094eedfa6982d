"""A deadline that is put off: it ends when it should, rests when it may, and is no other than asyncio's."""

import asyncio

import pytest

from tests.simulation.loop import VirtualLoop, run
from windrow_proto.patience import Patience


def _times_out_at_s(*words_s: float, rests_at_s: float | None = None) -> float:
    """When a patience of 30 s ends that is renewed at these times, and at rest from then on for 100 s."""

    async def history(loop: VirtualLoop) -> float:
        with pytest.raises(TimeoutError):
            async with Patience(30.0) as patience:
                for at_s in words_s:
                    await asyncio.sleep(at_s - loop.time())
                    patience.renew()
                if rests_at_s is not None:
                    await asyncio.sleep(rests_at_s - loop.time())
                    patience.rest()
                    await asyncio.sleep(100.0)
                    patience.renew()
                await asyncio.Event().wait()
        return loop.time()

    return run(1, history)


def test_it_ends_its_span_after_the_last_renewal() -> None:
    assert _times_out_at_s(0.0) == pytest.approx(30.0)
    assert _times_out_at_s(0.0, 1.0, 29.5, 31.0) == pytest.approx(61.0)


def test_at_rest_it_does_not_end_and_renewed_it_begins_anew() -> None:
    assert _times_out_at_s(0.0, 1.0, rests_at_s=2.0) == pytest.approx(132.0)


def test_a_cancellation_stays_one() -> None:
    async def history(loop: VirtualLoop) -> float:
        async def wait() -> None:
            async with Patience(30.0) as patience:
                patience.renew()
                await asyncio.Event().wait()

        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(wait())
            await asyncio.sleep(1.0)
            waiting.cancel()
        assert waiting.cancelled()
        return loop.time()

    assert run(1, history) == pytest.approx(1.0)


def test_renewing_it_sets_no_timer() -> None:
    async def history(loop: VirtualLoop) -> int:
        async with Patience(30.0) as patience:
            patience.renew()
            before = len(loop._scheduled)  # type: ignore[attr-defined]  # asyncio's own queue
            for _ in range(100):
                patience.renew()
            return len(loop._scheduled) - before  # type: ignore[attr-defined]

    assert run(1, history) == 0
