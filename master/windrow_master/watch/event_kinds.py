"""The kinds of events that an own rule may name. Pure; a test holds it to the events that are written."""

from typing import Final

from windrow_master.clusters.model import ClusterPhase
from windrow_master.fleet.host_events import SPOKEN
from windrow_master.jobs.model import JobState
from windrow_master.watch.signals import READERS

_WORDS: Final = {
    "access": "back draining joined kept_back lost resumed stop_test stop_tested",
    "account": "credited made resumed settled suspended",
    "agent": "restarted storage_damaged",
    "backend": "added allowed changed disallowed removed swept",
    "bandwidth": "measured",
    "cluster": "creating extended no_place_elsewhere resized results_cut try_failed",
    "command": "done",
    "condition": "cleared raised",
    "delivery": "given_up",
    "evidence": "put_aside",
    "fleet": "not_heard",
    "host": "active changed default_image draining enrolled gone joined kept_back link_misused listed lost maintenance "
    "misuse moved online place proof_failed proof_unfinished proved proving quarantined reports_too_much retired "
    "suspect unverified verified verify_failed verifying",
    "identity_provider": "set",
    "inventory": "note",
    "job": "backend_changed checkpoint_failed checkpoint_restored checkpoint_saved held impossible no_place_elsewhere "
    "refused released submitted topped try_failed",
    "join_token": "made revoked",
    "limit": "reached removed set",
    "mail": "given_up",
    "maintenance": "began changed declared removed",
    "offer": "priced",
    "organisation": "owner_made",
    "project": "deleted made offered restored transferred",
    "purchase": "booting doubtful draining ending gone joined never_made refused wanted",
    "receipt": "impossible refused",
    "rental": "budget_reached closed funds_low unpaid",
    "resource": "bound changed registered removed",
    "service_account": "made removed",
    "share": "made used withdrawn",
    "slot": "not_clean tier",
    "spool": "gap",
    "terminal": "ended",
    "token": "made revoked",
    "tunnel": "ended",
    "volume": "lost not_saved passed saved_in_part",
    "workload": "exited lost orphan wiped",
}
KINDS: Final = frozenset(
    {
        *READERS,
        *SPOKEN,
        *(f"job.{state.value.lower()}" for state in JobState),
        *(f"cluster.{phase.value.lower()}" for phase in ClusterPhase),
        *(f"{thing}.{word}" for thing, words in _WORDS.items() for word in words.split()),
    }
)
