"""A client that a stranger makes of the served description: it signs in, plans, creates, reads and deletes."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.services import client_generator, need
from tests.support.rental import Renter
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]

PROGRAM = """
import sys, time
from windrow_client import AuthenticatedClient, Client
from windrow_client.api.clusters import cluster, clusters, create_cluster, delete_cluster, plan_cluster
from windrow_client.api.identity import me, sign_in, sign_out
from windrow_client.api.operators import healthz
from windrow_client.models import ClusterBody, Problem, SessionBody

url, token = sys.argv[1:]
nobody = Client(base_url=url)
assert healthz.sync(client=nobody).status == "ok"
wrong = sign_in.sync(client=nobody, body=SessionBody(token="wt_wrong"))
assert isinstance(wrong, Problem) and (wrong.status, wrong.code) == (401, "unauthenticated"), wrong
signed = sign_in.sync(client=nobody, body=SessionBody(token=token))
client = AuthenticatedClient(base_url=url, token=signed.secret, raise_on_unexpected_status=True)
assert me.sync(client=client).account.id == signed.account.id

request = ClusterBody.from_dict({"kind": "box", "argv": ["sleep", "300"], "name": "strange"})
too_much = ClusterBody.from_dict({"kind": "box", "argv": ["true"], "gpus": 1, "tier": "gpu/none"})
ends = time.monotonic() + 90
while not (plan := plan_cluster.sync(client=client, body=request)).fits and time.monotonic() < ends:
    time.sleep(1)
assert plan.fits and plan.price_per_hour, plan
refused = create_cluster.sync(client=client, body=too_much)
assert isinstance(refused, Problem) and 400 <= refused.status < 500, refused

made = create_cluster.sync(client=client, body=request, idempotency_key="strange-1").cluster
assert create_cluster.sync(client=client, body=request, idempotency_key="strange-1").cluster.id == made.id
while (seen := cluster.sync(made.id, client=client)).phase != "Running":
    assert time.monotonic() < ends and seen.phase not in ("Failed", "Deleted"), seen
    time.sleep(0.5)
assert seen.name == "strange" and seen.workloads[0].host_id, seen
page = clusters.sync(client=client, limit=1)
assert [one.id for one in page.items] == [made.id], page
assert delete_cluster.sync(made.id, client=client).cluster.id == made.id
while cluster.sync(made.id, client=client).phase != "Deleted":
    assert time.monotonic() < ends
    time.sleep(0.5)
gone = cluster.sync("cluster_none", client=client)
assert isinstance(gone, Problem) and gone.code == "not_found", gone
assert sign_out.sync_detailed(client=client).status_code == 204
assert me.sync(client=client).code == "unauthenticated"
print(made.id)
"""


@pytest.mark.long
@pytest.mark.proves("a client made of the served OpenAPI description rents from the real Master")
def test_a_generated_client_signs_in_plans_creates_reads_and_deletes(renter: Renter, tmp_path: Path) -> None:
    need("client_generator")
    generator, cli = Path(client_generator()), renter.stack.cli
    environment = os.environ | {"PATH": f"{generator.parent}:{os.environ['PATH']}", "PYTHONPATH": str(tmp_path)}
    url, client = f"{cli['url']}/api/v1/openapi.json", tmp_path / "windrow_client"

    made = _run([str(generator), "generate", "--meta", "none", "--url", url, "--output-path", str(client)], environment)
    assert "WARNING" not in made and "Warning" not in made, made
    (tmp_path / "rent.py").write_text(PROGRAM)
    python = str(generator.with_name("python"))
    _run([python, "-m", "compileall", "-q", str(client)], environment)
    rented = _run([python, str(tmp_path / "rent.py"), cli["url"], cli["token"]], environment)

    cluster = renter.ask("GET", f"/clusters/{rented.strip()}")
    assert (cluster["name"], cluster["phase"]) == ("strange", "Deleted")


def _run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S * 2,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
