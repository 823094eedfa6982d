"""Ten machines of one processor each run at once on a host of sixteen, through the shipped daemons, and none is in
another's way; what does not fit beside them is refused with how much is left."""

import sys

import pytest

from tests.support.rental import renting
from tests.support.wrapped_up import COMMAND, wrapped
from windrow.errors import ApiProblem

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(400)]

PROCESSORS, MACHINES = 16, 10
AGENT = f"""
from windrow_agent.__main__ import main
from windrow_agent.host.psutil_reader import PsutilHost
PsutilHost._cpu_count = lambda self: {PROCESSORS}
main()
"""
"""As shipped, on a machine that says it has sixteen processors."""
SAYS = "echo $0 > mine; pwd; echo I am $(cat mine); sleep 600"


@pytest.mark.proves(
    "ten machines of one processor on one host of sixteen; the one that does not fit is told what is left"
)
def test_ten_machines_run_on_one_host_and_the_one_that_does_not_fit_hears_why() -> None:
    environment = wrapped({"agent": (sys.executable, "-c", AGENT)})
    with renting(environment=environment, command=COMMAND) as renter:
        assert renter.host()["cpu_count"] == PROCESSORS
        ids = [renter.create("sh", "-c", SAYS, f"m{number}", until="")["id"] for number in range(MACHINES)]
        places = [renter.phase(one, "Running", "Failed")["workloads"][0] for one in ids]
        logs = [renter.windrow("cluster", "logs", one).stdout.split("\n", 1) for one in ids]

        assert {one["phase"] for one in places} == {"running"}
        assert sorted(int(one["slots"][0].rpartition("/")[2]) for one in places) == list(range(MACHINES))
        assert len({folder for folder, _ in logs}) == MACHINES
        assert [said.strip() for _, said in logs] == [f"I am m{number}" for number in range(MACHINES)]
        assert sum(slot["cpus"] for slot in renter.slots()) == MACHINES
        (offer,) = [one for one in renter.all("/offers") if one["unit"] == "processor"]
        assert (offer["free"], offer["total"], offer["hosts"]) == (1, 1, 1)
        with pytest.raises(ApiProblem) as refused:
            renter.create("true", cpus=7, until="")
        assert "too few CPUs (6 free, you ask for 7)" in str(refused.value)
        renter.delete(ids[0])
        assert renter.create("sleep", "600", cpus=7)["phase"] == "Running"
