"""Jobs that find no room here have a machine bought, one place after another, and run there."""

from pathlib import Path

from tests.unit.hybrid.search.world import world
from windrow_master.hybrid.purchases.states import State
from windrow_master.jobs.model import JobState


async def test_a_job_that_fits_nowhere_has_a_machine_bought_and_runs_there(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        job = await w.submit(backend="cloud")
        await w.turn(2)
        (bought,) = await w.bought()
        assert (bought.for_id, bought.account_id, bought.state) == (job.job_id, job.account_id, State.BOOTING)
        assert await w.tries(job) == [("eu-central-1a", "on-demand", "booting")]
        assert (await w.get(job)).reason.startswith("a machine is being bought at cloud eu-central-1a, m7i.xlarge")
        w.join(bought)
        await w.turn(6)
        now = await w.get(job)
        assert now.state is JobState.STARTING
        place = now.attempts[-1].place
        assert place is not None and place.purchase_id == bought.purchase_id
        assert await w.tries(job) == [("eu-central-1a", "on-demand", "used")]
        text = "cloud eu-central-1a, m7i.xlarge (0.2016 USD an hour)"
        assert w.told("job.backend_changed") == [f"{now.name} is now at {text}: there was no room here"]
