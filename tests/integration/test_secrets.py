"""A running market keeps its secrets: in no log, command line, environment, database, or file that others can read."""

import pytest

from tests.support.canaries import collect, leaks, open_to_others, plant
from tests.support.rental import Renter


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.proves(
    "planted tokens, cookies and keys stand in no log, argv, environment or database of a running market"
)
def test_a_market_that_was_used_leaves_its_secrets_nowhere(renter: Renter) -> None:
    running = renter.stack
    cluster = renter.create("sh", "-c", "env; sleep 30", env={"WORD": "of-the-renter"})
    assert open_to_others(running.data_dir) == []
    secrets = collect(running.data_dir)
    plant(secrets, running.cli["url"], running.cli["token"])
    renter.delete(cluster["id"])
    audit = renter.ask("GET", "/audit/verify")
    listed = {entry["action"] for entry in renter.all("/audit")}
    verified = renter.windrow("audit", "verify")

    names = set(secrets.found)
    assert {"cli.json", "identity/ca.key", "identity/sign.key", "agent/identity/identity.json"} <= names
    assert {"planted token", "planted join token", "planted session", "wrong token"} <= names
    assert leaks(secrets, [running.process.pid, *running.pids()], running.data_dir) == []
    assert audit["intact"], audit["problem"]
    assert {"account.make", "host.join"} <= listed
    assert (verified.returncode, "intact" in verified.stdout) == (0, True), verified.stdout + verified.stderr
    # The end of the market looks everywhere again, while it runs and after it has stopped.
