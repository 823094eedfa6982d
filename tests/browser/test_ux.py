"""Every job of a first-time user in real Chromium, by visible texts and roles: clicks, fields and seconds of each.

`make ux` plays them on a market of 50 simulated hosts with faults and two weeks of past (ux_market.py), prints a table
and a line of JSON, and fails where a limit is broken or a job cannot be done.
"""

import asyncio
import json
import os
from pathlib import Path

import pytest
from playwright.async_api import Browser, Error

from tests.browser.busy_market import BusyMarket
from tests.browser.ux_jobs import JOBS, Job, Scene
from tests.services import need

FAILED_CHARS = 400


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.proves("console: every job of a first-time user within its clicks, fields and seconds", by="make ux")
@pytest.mark.skipif(not os.environ.get("UX"), reason="a market with two weeks of past, and every job on it: make ux")
async def test_every_job_is_done_within_its_limits(browser: Browser, ux: BusyMarket, tmp_path: Path) -> None:
    need("jupyter")
    scene = Scene(browser, ux, tmp_path)
    rows = [await _played(job, scene) for job in JOBS]
    print(*_table(rows), sep="\n")
    print(json.dumps({"ux": rows}), flush=True)
    broken = [f"{row['job']}: {row['problem'] or 'over its limit'}" for row in rows if not row["held"]]
    assert not broken, "\n".join(broken)


async def _played(job: Job, scene: Scene) -> dict[str, object]:
    """A job's row: what it took, and whether that is within its limits."""
    problem = ""
    async with scene.hand(job.who) as hand:
        try:
            await job.play(hand, scene)
        except (AssertionError, Error, TimeoutError) as error:
            problem = " ".join(str(error).split())[:FAILED_CHARS] or type(error).__name__
            await hand.page.screenshot(path=scene.folder / f"{job.name.replace(' ', '-')}.png")
    await asyncio.to_thread(scene.clear)
    seconds = round(hand.seconds, 1) if hand.seconds is not None else 0.0
    held = not problem and job.limit.holds(hand.clicks, hand.fields, seconds)
    row = {"job": job.name, "clicks": hand.clicks, "fields": hand.fields, "seconds": seconds, "limit": str(job.limit)}
    print(f"{job.name}: {hand.clicks} clicks, {hand.fields} fields, {seconds} s {problem}", flush=True)
    return {**row, "before": job.before, "held": held, "problem": problem}


def _table(rows: list[dict[str, object]]) -> list[str]:
    """The rows as lines with columns."""
    heads = ("job", "clicks", "fields", "seconds", "limit", "held", "before")
    cells = [heads, *([str(row[head]) for head in heads] for row in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(heads))]
    return ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in cells]
