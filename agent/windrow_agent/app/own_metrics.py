"""Metrics of the agent and of this host's GPUs, for Prometheus on this host."""

import socket
from collections.abc import Iterable

from windrow_agent.app.service import AgentService
from windrow_agent.report.gpu_figures import gpu_figures
from windrow_proto.crashes import Crashes
from windrow_proto.scrape import Figure


def figures(service: AgentService, crashes: Crashes) -> Iterable[Figure]:
    """The link, the GPUs, the spool and the workloads; the latter two once the disk's past is read."""
    sampler = service.parts.sampler
    yield from gpu_figures(sampler.gpus, sampler.readings, socket.gethostname())
    yield Figure("agent_connected", "1 while a relay is served", float(service.connected.is_set()))
    yield Figure("agent_bugs_met_total", "Bugs met that ended only what met them", crashes.counts.total())
    is_open = hasattr(service, "workloads")
    yield Figure("agent_ready", "1 once the journal and the spool are open", float(is_open))
    if is_open:
        yield Figure("agent_spool_bytes", "Kept on disk until it is acknowledged", service.outbox.spool_bytes)
        yield Figure("agent_evidence_waiting", "1 while evidence waits", float(service.outbox.is_evidence_waiting))
        yield Figure("agent_workloads", "Workloads that run", service.workloads.running())
