"""Gives the market to Prometheus: jobs and clusters that have not ended, the wait in the queue, earnings, alerts."""

from typing import Final

from windrow_master.api.deps import Services
from windrow_master.api.fleet_feed import feed_of
from windrow_master.api.overview import glance
from windrow_master.api.overview_routes import earned
from windrow_master.jobs.model import JobState
from windrow_proto.scrape import Figure
from windrow_proto.units import CURRENCY_TEST, MICROCENTS_PER_UNIT, SECOND

MONEY: Final = {"currency": CURRENCY_TEST}


async def market_figures(services: Services) -> list[Figure]:
    """All of them, as they are now."""
    jobs, clusters = await services.jobs.counts(), await services.clusters.counts()
    figures = [
        *(Figure("jobs", "Jobs that have not ended", count, {"state": state}) for state, (count, _) in jobs.items()),
        *(Figure("clusters", "Clusters that are there", count, {"phase": phase}) for phase, count in clusters.items()),
    ]
    alerts = await services.alerts.counts()
    figures += [
        Figure("alerts", "Alerts that are open", count, {"rule": rule, "severity": severity, "state": state})
        for (rule, severity, state), count in sorted(alerts.items())
    ]
    now_ns = services.clock.wall_ns()
    _, oldest_ns = jobs.get(JobState.QUEUED, (0, now_ns))
    wait_s = max(0, now_ns - oldest_ns) / SECOND
    figures.append(Figure("queue_oldest_seconds", "For how long the oldest queued job has waited", wait_s))

    sums = glance(services.fleet.view, await feed_of(services).book())
    _, today = (await earned(services, None))[-1]
    for name, text, amount in (
        ("money_earned_today", "Earned by providers and the platform since midnight UTC", today),
        ("money_rented_per_hour", "Asked prices of the real slots that are rented", sums.rented_per_hour),
        ("money_idle_per_hour", "Asked prices of the real slots that are idle", sums.idle_per_hour),
    ):
        figures.append(Figure(name, text, amount / MICROCENTS_PER_UNIT, MONEY))
    return figures
