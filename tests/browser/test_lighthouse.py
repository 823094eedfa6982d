"""What Lighthouse says of five pages of the shipped stack, and how much JavaScript the first page loads.

`make ux` runs it on its market; Lighthouse is fetched then, not by `make test`.
"""

import gzip
import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import Browser, Response

from tests.browser.busy_market import BusyMarket
from tests.browser.chromium import HERE, Chromium, NoBrowser, install_packages
from tests.browser.provider_process import node
from tests.browser.ux_jobs import at_rest
from tests.services import all_required
from tests.support.people import Person

LEAST: Final = 95
"""Of 100, for what is judged."""
MOST_BYTES: Final = 250 * 1024
"""Of scripts in gzip, until the first page is usable."""
JUDGED: Final = ("accessibility", "best-practices")
PRINTED: Final = (*JUDGED, "performance")
ONE_PAGE_S: Final = 240
FLAGS: Final = (
    "--preset=desktop",
    "--output=json",
    "--quiet",
    "--no-enable-error-reporting",
    "--max-wait-for-load=20000",  # a page with live streams never comes to rest
)
CHROME_FLAGS: Final = "--headless --no-sandbox --lang=en-GB"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(3_600),
    pytest.mark.skipif(not os.environ.get("UX"), reason="Lighthouse on a busy market: make ux"),
]


@pytest.fixture(scope="module")
def lighthouse() -> Path:
    """Its command, a script for Node.js."""
    script = HERE / "node_modules" / "lighthouse" / "cli" / "index.js"
    try:
        if not script.is_file():
            install_packages("--include=dev")
    except NoBrowser as missing:
        (pytest.fail if all_required() else pytest.skip)(str(missing))
    return script


@pytest.mark.proves("console: Lighthouse finds five pages accessible and well made", by="make ux")
def test_lighthouse_finds_five_pages_accessible_and_well_made(
    ux: BusyMarket, lighthouse: Path, chromium: Chromium, tmp_path: Path
) -> None:
    with ux.renter.client() as api:
        machine = next(one["id"] for one in api.items("/clusters") if one["name"] == "train-llama")
    pages = (
        ("home", ux.renter, "/"),
        ("GPUs & prices", ux.renter, "/shop"),
        ("New", ux.renter, "/new"),
        ("machine", ux.renter, f"/clusters/{machine}"),
        ("Fleet", ux.operator, "/fleet"),
    )
    faults = list[str]()
    print(f"{'page':14}" + "".join(f"{name:>16}" for name in PRINTED), flush=True)
    for name, person, path in pages:
        report = _report(lighthouse, chromium, person, path, tmp_path / "report.json")
        scores = {one: round(100 * (report["categories"][one]["score"] or 0)) for one in PRINTED}
        print(f"{name:14}" + "".join(f"{score:>16}" for score in scores.values()), flush=True)
        lost = _lost(report)
        for line in lost:
            print(f"    {line}", flush=True)
        faults += [f"{name}: {one} {scores[one]}: {lost}" for one in JUDGED if scores[one] < LEAST]
    assert not faults, "\n".join(faults)


def _report(lighthouse: Path, chromium: Chromium, person: Person, path: str, kept: Path) -> dict[str, Any]:
    """Lighthouse's report of this page, in a browser of its own; its address signs the person in."""
    address = f"{person.url}{path}#token={person.token}"
    command = [node(), str(lighthouse), address, *FLAGS, f"--chrome-flags={CHROME_FLAGS}", f"--output-path={kept}"]
    command.append(f"--only-categories={','.join(PRINTED)}")
    environment = {**os.environ, **chromium.environment, "CHROME_PATH": chromium.path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=ONE_PAGE_S, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(kept.read_text())
    assert path == "/" or found["finalDisplayedUrl"].endswith(path), found["finalDisplayedUrl"]
    return found


def _lost(report: dict[str, Any]) -> list[str]:
    """What cost a page points in the categories that are judged, and where."""
    lost = []
    for ref in (ref for one in JUDGED for ref in report["categories"][one]["auditRefs"] if ref["weight"]):
        audit = report["audits"][ref["id"]]
        if audit["score"] is not None and audit["score"] < 1:
            where = json.dumps(audit.get("details", {}).get("items", []))[:600]
            lost.append(f"{audit['id']}: {audit['title']} {where}")
    return lost


@pytest.mark.proves("console: at most 250 KiB of scripts until the first page is usable", by="make ux")
async def test_the_first_page_loads_at_most_250_kib_of_scripts(browser: Browser, ux: BusyMarket) -> None:
    took = {"signed out": await _scripts_bytes(browser, f"{ux.renter.url}/")}
    for name, person in (("renter", ux.renter), ("provider", ux.provider), ("operator", ux.operator)):
        took[f"home of a {name}"] = await _scripts_bytes(browser, f"{person.url}/#token={person.token}")
    print(*(f"{name}: {size / 1024:.1f} KiB of scripts" for name, size in took.items()), sep="\n", flush=True)
    assert max(took.values()) <= MOST_BYTES, took


async def _scripts_bytes(browser: Browser, address: str) -> int:
    """The scripts that a browser without a cache loads until this page rests, in gzip."""
    context = await browser.new_context(locale="en-GB")
    page, scripts = await context.new_page(), dict[str, Response]()

    def answered(response: Response) -> None:
        if response.request.resource_type == "script":
            scripts[response.url] = response

    page.on("response", answered)
    await page.goto(address)
    await at_rest(page)
    size = sum([len(gzip.compress(await response.body())) for response in scripts.values()])
    await context.close()
    return size
