"""A running market keeps its secrets: in no log, command line, environment, database, or file that others can read."""

import json
from pathlib import Path

import pytest

from tests.support.canaries import collect, open_to_others, plant
from tests.support.rental import Renter
from tests.support.stack import stack, wait_for


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.proves(
    "planted tokens, cookies and keys stand in no log, argv, environment or database of a running market"
)
def test_a_market_that_was_used_leaves_its_secrets_nowhere(tmp_path: Path) -> None:
    with stack("--simulate", "1", folder=tmp_path) as running:
        Renter(running).online()
        with running.client() as api:
            cluster = api.create_cluster({"argv": ["sh", "-c", "env; sleep 30"], "env": {"WORD": "of-the-renter"}})
            wait_for(lambda: api.cluster(cluster["id"])["phase"] == "Running")
            assert open_to_others(running.data_dir) == []
            secrets = collect(running.data_dir)
            plant(secrets, running.cli["url"], running.cli["token"])
            api.delete_cluster(cluster["id"])
            audit = api.get("/audit/verify")
        listed = Renter(running).windrow("audit", "ls", "--json")
        verified = Renter(running).windrow("audit", "verify")

        names = set(secrets.found)
        assert {"cli.json", "identity/ca.key", "identity/sign.key", "agent/identity/identity.json"} <= names
        assert {"planted token", "planted join token", "planted session", "wrong token"} <= names
        assert audit["intact"], audit["problem"]
        assert {"account.make", "host.join"} <= {entry["action"] for entry in json.loads(listed.stdout)}
        assert (verified.returncode, "intact" in verified.stdout) == (0, True), verified.stdout + verified.stderr
    # Leaving the stack looked everywhere, while it ran and after it had stopped.
