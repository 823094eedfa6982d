"""The one table of built-in alert rules. Each condition that a person has to look at is a rule, too. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Any, Final

from windrow_master.market.limits import MARKS
from windrow_master.watch.model import SETTLE_NS, Raise
from windrow_proto.conditions import ConditionCode, Effect, Scope, Severity, find
from windrow_proto.units import DAY, HOUR, MINUTE, SECOND

PAGE_AGAIN_NS: Final = 15 * MINUTE
"""A page that nobody acknowledges is told again after this time, then after twice as long, and once more."""
MOMENT_NS: Final = HOUR
"""A moment, such as a failed job, counts as over so long after it: it has no end of its own."""
QUEUE_NS: Final = 10 * MINUTE
LEASE_NS: Final = 10 * MINUTE
"""Before a cluster ends by its duration."""
IDLE_NS: Final = 30 * MINUTE
IDLE_RATIO: Final = 0.02
"""A GPU is idle while it is used no more than this."""
NOTICE: Final = "host.maintenance"
BUDGETS: Final = MARKS
"""Percent of a budget at which its owner is told."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. audience: in words, for the documentation. signal: what raises it: kinds of events, or a level that is
    looked at. lasts_ns: of a moment; duration_ns: for how long it must hold."""

    code: str
    severity: Severity
    title: str
    remedy: str
    audience: str
    signal: str
    duration_ns: int = 0
    settle_ns: int = SETTLE_NS
    lasts_ns: int | None = None

    def raised(self, **said: Any) -> Raise:
        """A signal of this rule. said: the rest of its fields, or others in place of the rule's own."""
        severity = said.get("severity", self.severity)
        own = {
            "rule": self.code,
            "severity": severity,
            "title": f"{self.title}: {said['name']}",
            "remedy": _NAMED.sub(lambda _: quote(said["name"]), self.remedy),
            "duration_ns": self.duration_ns,
            "settle_ns": self.settle_ns,
            "lasts_ns": self.lasts_ns,
            "escalate_ns": PAGE_AGAIN_NS if severity is Severity.PAGE else None,
        }
        return Raise(**own | said)


_NAMED: Final = re.compile(r"\b(JOB|CLUSTER)\b")
"""In a remedy: what the alert is about, by its name."""
_PAGE, _TICKET = Severity.PAGE, Severity.TICKET
_HOST, _RENTER, _OPERATORS = "operators, the host's owner", "the renter", "operators"
_WHY: Final = "Read the job's log: `windrow logs JOB`."
_LIMITS: Final = "Raise the limit (`windrow limit set`), or end what is not needed: `windrow ps`."

BUILT_IN: Final = (
    Rule(
        "host.lost", _TICKET, "Host lost",
        "Look whether the host has power and network, then `systemctl status windrow-agent` on it.",
        _HOST, "host.lost, host.online; a page while something on it is rented",
    ),
    Rule(
        "host.flapping", _TICKET, "Host comes and goes",
        "Look at the host's network. It takes new work again when it has been heard without a break.",
        _HOST, "host.online, after three silences in a few minutes",
    ),
    Rule(
        "host.quarantined", _PAGE, "Host quarantined by the Master",
        "Find out why: `windrow host show HOST`. Verify the host again, or remove it.",
        _HOST, "host.quarantined",
    ),
    Rule(
        NOTICE, _TICKET, "Maintenance",
        "Save what is to stay, and end it or rent elsewhere before it begins. `windrow maintenance ls` has its times.",
        "renters on the hosts, the hosts' owners", "maintenance.declared, .changed, .removed, until the window is over",
        settle_ns=0,
    ),
    Rule(
        "relay.down", _PAGE, "Relay down",
        "Start it again with `windrow-access run`; its hosts use another relay meanwhile.",
        _OPERATORS, "access.lost, access.back",
    ),
    Rule(
        "relay.one_sided", _TICKET, "Relay does not pass everything on",
        "Its hosts use another relay. Look at the relay's network and log, and start it again. If one host alone says "
        "so, look at that host.",
        _OPERATORS, "access.kept_back", lasts_ns=MOMENT_NS,
    ),
    Rule(
        "gpu.ecc", _TICKET, "Uncorrected memory errors of a GPU grow",
        "Drain the host (`windrow host drain HOST`) and reset the GPU. If they grow again, replace the card.",
        _HOST, "gpu.ecc_uncorrected", lasts_ns=MOMENT_NS,
    ),
    Rule(
        "driver.changed", _TICKET, "GPU driver changed",
        "Nothing, if you changed it. The host's GPUs are verified again before strangers' work runs on them.",
        _HOST, "host.changed", lasts_ns=MOMENT_NS,
    ),
    Rule(
        "job.queued", _TICKET, "Job waits in the queue",
        "`windrow job show JOB` says what it waits for: ask for less, for another GPU, or at a higher price.",
        "the renter, operators", "job.queued", duration_ns=QUEUE_NS,
    ),
    Rule("job.failed", _TICKET, "Job failed", _WHY, _RENTER, "job.failed, job.lost", lasts_ns=MOMENT_NS),
    Rule(
        "job.retried", _TICKET, "Job lost its place and is tried again",
        "Nothing: it goes on from its last checkpoint, if it has one, once there is a place.",
        _RENTER, "job.migrating",
    ),
    Rule(
        "cluster.degraded", _TICKET, "Member of a cluster lost",
        "Wait: the member is replaced where the cluster's kind allows it. `windrow cluster show CLUSTER` says more.",
        _RENTER, "cluster.degraded",
    ),
    Rule(
        "cluster.rank_failed", _TICKET, "Rank of a cluster failed",
        "Read on in its log: `windrow logs CLUSTER --rank N`. What other ranks say is mostly a result of it.",
        _RENTER, "the first rank of a gang ends with an error", lasts_ns=MOMENT_NS,
    ),
    *(
        Rule(
            f"budget.{percent}", _PAGE if percent == BUDGETS[-1] else _TICKET, f"{percent} % of a budget used", _LIMITS,
            _RENTER, "limit.reached, rental.budget_reached",
        )
        for percent in BUDGETS
    ),
    Rule(
        "balance.low", _PAGE, "Balance low",
        "Add credits, or end what is not needed: what runs ends when they are gone.",
        _RENTER, "rental.funds_low",
    ),
    Rule(
        "lease.ending", _TICKET, "Lease ends soon",
        "Save what is to stay, in a volume or by `windrow cluster files CLUSTER`. Its duration was asked for.",
        _RENTER, "cluster.running, with a duration of an hour or more",
    ),
    Rule(
        "lease.idle", _TICKET, "Rented and idle", "End it if it was forgotten: `windrow cluster delete CLUSTER`.",
        _RENTER, f"no GPU of a cluster was used more than {IDLE_RATIO:.0%} for 30 minutes",
    ),
    Rule(
        "volume.unsaved", _PAGE, "Volume not saved",
        "`windrow volume ls` shows its last version. What was written since is lost with the machine.",
        _RENTER, "volume.not_saved, volume.saved_in_part, volume.lost", lasts_ns=DAY,
    ),
)  # fmt: skip


FAULTS: Final = tuple(code.value for code in ConditionCode if code.effect is Effect.FAULT)
"""Faults of a GPU, the gravest first. A card that falls off its bus shows a lesser one before: it is one alert."""
SAME_CARD_NS: Final = 2 * SECOND
"""For a graver fault of the same card to come: the agent's next look at it is a second away."""


def _of(code: ConditionCode) -> Rule:
    is_own = code.scope in (Scope.MASTER, Scope.ACCESS)
    audience, signal = (_OPERATORS, "as Health says") if is_own else (_HOST, "condition.raised, condition.cleared")
    duration_ns = SAME_CARD_NS if code.value in FAULTS[1:] else 0
    return Rule(code.value, code.severity, code.heading, code.remedy, audience, signal, duration_ns)


CONDITIONS: Final = tuple(_of(code) for code in ConditionCode if code.severity is not Severity.INFO)
"""The rules of conditions; those for information alert nobody."""
RULES: Final[Mapping[str, Rule]] = {rule.code: rule for rule in (*BUILT_IN, *CONDITIONS)}
LEVELS: Final = (
    "lease.idle",
    *(code.value for code in ConditionCode if code.scope in (Scope.MASTER, Scope.ACCESS)),
)  # fmt: skip
"""Rules without events: what holds is looked at, and what holds no more is cleared."""


def of_condition(text: str) -> Rule | None:
    """The rule of a condition as agents write it, `code` or `code:subject`; None: nobody is alerted."""
    known = find(text)
    return None if known is None else RULES.get(known.value)


def words(code: str) -> str:
    """A rule in words, for lists; the code itself where it is somebody's own rule or of another release."""
    return RULES[code].title if code in RULES else code


def page() -> str:
    """The table of docs/alerts.md."""
    lines = ["| rule | severity | told to | raised by |", "|---|---|---|---|"]
    lines += [
        f"| `{rule.code}` {rule.title} | {rule.severity} | {rule.audience} | {rule.signal} |" for rule in BUILT_IN
    ]
    return "\n".join(lines) + "\n"
