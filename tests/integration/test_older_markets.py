"""Data directories of earlier versions: the last commit with all migrations is gone on from, older ones are refused."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.hostile.test_restore import done
from tests.integration.test_master_start import ANY_PORT, FAILS_S, failing, mark
from tests.waiting import poll
from windrow_master.app.tables import whole_schema
from windrow_master.store.copies import problems_of_sqlite
from windrow_master.store.engine import sqlite_engines
from windrow_master.store.migrate import PASSAGE, differences, upgrade
from windrow_up.client import MasterHttp

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def market(tmp_path: Path) -> Path:
    """A data directory as the last commit with all migrations left it: hosts, clusters, a job and receipts.

    `windrow up --simulate 2` made it; the database's log has been merged into its file.
    """
    with ZipFile(Path(__file__).with_name("market_0030.zip")) as archive:
        archive.extractall(tmp_path / "market")
    for key in (tmp_path / "market" / "identity").glob("*.key"):
        key.chmod(0o600)
    return tmp_path / "market"


def test_a_database_of_the_last_commit_with_all_migrations_is_led_to_the_schema_of_today(market: Path) -> None:
    database = market / "master.sqlite3"
    engines = sqlite_engines(database)

    upgrade(engines.writer)

    assert differences(engines.writer, whole_schema()) == []
    engines.dispose()
    assert problems_of_sqlite(database) == []


def test_a_master_goes_on_with_a_market_of_the_last_commit_with_all_migrations(market: Path) -> None:
    log = market.parent / "master.log"
    # Without it no Master starts on a directory whose last entry is a year old.
    environment = os.environ | {"WINDROW_ACCEPT_CLOCK": "on"}
    words = [sys.executable, "-m", "windrow_master", "--data-dir", str(market), *ANY_PORT]
    with log.open("wb") as said:
        process = subprocess.Popen(words, env=environment, stdout=said, stderr=said)
    try:
        poll(lambda: '"master_ready"' in log.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        record = json.loads((market / "cli.json").read_text())
        http = MasterHttp(record["local_url"], record["token"], Path(record["ca_pem"]))
        hosts = {one["name"] for one in http.items("/hosts")}
        clusters = {one["name"]: one["phase"] for one in http.items("/clusters")}
        receipts = {one["cluster_name"]: one["state"] for one in http.items("/receipts")}
        jobs = [one["state"] for one in http.items("/jobs")]
        process.send_signal(signal.SIGTERM)
        assert process.wait(FAILS_S) == 0, log.read_text()
    finally:
        process.kill()
        process.wait(FAILS_S)

    assert hosts == {"lab", "simulated-0000", "simulated-0001"}
    assert clusters == {"first": "Deleted", "second": "Deleted", "sums": "Finished"}
    assert receipts == dict.fromkeys(clusters, "closed")
    assert jobs == ["Succeeded"]
    assert "is whole" in done(0, "check", "--data-dir", market)


def test_an_older_market_is_refused_with_the_way_through_and_stays_as_it_is(market: Path) -> None:
    mark(market / "master.sqlite3", "0029_job_files")
    before = {path: path.read_bytes() for path in market.rglob("*") if path.is_file()}

    backup = market.parent / "market.tar"
    said = [failing(market), *(done(1, *words, "--data-dir", market) for words in (("check",), ("backup", backup)))]

    for message in said:
        assert "is too old: its schema is of revision 0029_job_files" in message, message
        assert f"Install Windrow as of commit {PASSAGE}" in message
    assert {path: path.read_bytes() for path in before} == before
    assert not backup.exists()
