"""Writes events for people: a title for each kind, and names in the place of ids and codes. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from windrow_master.fleet.host_events import words_of
from windrow_proto import conditions
from windrow_proto.conditions import ConditionCode
from windrow_proto.xids import XIDS

RAISED: Final = "condition.raised"
CLEARED: Final = "condition.cleared"
_TITLES: Final[Mapping[str, str]] = {
    "access.kept_back": "Relay kept messages back",
    "access.stop_test": "Relay is stopped as a test",
    "access.stop_tested": "Relay was stopped as a test",
    "agent.storage_damaged": "Agent's files damaged",
    "backend.allowed": "Project may buy at a backend",
    "backend.disallowed": "Project may buy no more",
    "cluster.no_place_elsewhere": "No place elsewhere for a machine",
    "cluster.results_cut": "Results not kept",
    "cluster.try_failed": "A place elsewhere was not had",
    "command.done": "Command done",
    "evidence.put_aside": "Message put aside",
    "fleet.not_heard": "Hosts not heard yet",
    "gpu.ecc_uncorrected": "GPU memory error",
    "gpu.recovered": "GPU is back",
    "gpu.recovery_action": "GPU needs a reset",
    "gpu.xid": "GPU driver error (XID)",
    "host.changed": "Host hardware changed",
    "host.default_image": "Default image changed",
    "host.place": "Country or labels changed",
    "host.enrolled": "Host joined",
    "host.gone": "Host's machine ended",
    "host.kept_back": "Host's messages kept back",
    "host.leaving": "Host will be gone",
    "host.link_misused": "Host sent nonsense",
    "host.lost": "Host offline",
    "host.moved": "Host changed its relay",
    "host.proof_failed": "Test run failed",
    "host.proof_unfinished": "Test run not finished",
    "host.proved": "Test run passed",
    "host.proving": "Test run started",
    "host.reports_too_much": "Host reports too much",
    "host.suspect": "Host not answering",
    "host.unverified": "Host could not be verified",
    "host.verify_failed": "Verification failed",
    "host.verifying": "Verification started",
    "inventory.note": "Note about the inventory",
    "job.backend_changed": "Job goes on at another place",
    "job.checkpointing": "Job's files are saved",
    "job.no_place_elsewhere": "No place elsewhere for a job",
    "job.try_failed": "A place elsewhere was not had",
    "job.topped": "Job put first in its project",
    "offer.priced": "Price changed",
    "organisation.owner_made": "Owner of an organisation made",
    "receipt.impossible": "Impossible receipt",
    "rental.closed": "Rental ended",
    "rental.funds_low": "Money runs out",
    "rental.unpaid": "Ended: money ran out",
    "slot.not_clean": "GPU not clean after a rental",
    "slot.tier": "Grade changed",
    "spool.gap": "Host lost records",
    "tunnel.ended": "Tunnel ended",
    "volume.lost": "Volume not saved",
    "volume.saved_in_part": "Volume saved in part",
    "workload.exited": "Work ended",
    "workload.orphan": "Unknown work ended",
    "workload.wiped": "Cache wiped",
}
_THINGS: Final[Mapping[str, str]] = {
    "access": "relay",
    "cluster": "machine",
    "gpu": "GPU",
    "jointoken": "join token",
    "passwordlink": "password link",
    "service": "service account",
    "slot": "GPU",
    "workload": "work",
}
"""What people call a kind of things, where the name in ids and kinds is another."""
_CODES: Final = re.compile(
    r"(?<![\w./-])("
    + "|".join(re.escape(code) for code in sorted(ConditionCode, key=len, reverse=True))
    + r")(:(?:GPU|MIG|MPS)-[\w/-]+)?(?![\w.-]*\w)"
)
_CPU_SLOT: Final = re.compile(r"\b(host_[0-9a-f]{32})/cpu/(\d+)")
ID: Final = re.compile(r"\b(?:[a-z]{2,12}_[0-9a-f]{32}|(?:GPU|MIG|MPS)-[0-9a-f]{8}-[0-9a-f-]{27}(?:/[\w/.-]*\w)?)\b")
"""An id in a text: of a thing in the market, or of a GPU or a part of one."""


def title_of(kind: str, subjects: Sequence[str], fields: Mapping[str, str]) -> str:
    """An event in a few words: its kind, or the condition that came or went. subjects: what it is about."""
    if kind in (RAISED, CLEARED):
        heading = conditions.heading_of(fields.get("code", ""))
        return heading if kind == RAISED else f"Solved: {heading}"
    if kind == "gpu.xid" and (code := fields.get("xid", "")).isdecimal() and int(code) in XIDS:
        return XIDS[int(code)].name
    known = known_title(kind)
    if known is not None:
        return known
    condition = conditions.find(kind)
    if condition is not None:
        return condition.heading
    thing, _, rest = kind.partition(".")
    if thing == "cluster" and sum(one.startswith("host_") for one in subjects) > 1:
        return _sentence(f"cluster {rest}")
    return _sentence(f"{thing_of(thing)} {rest}".strip())


def known_title(kind: str) -> str | None:
    """The words of a kind of events whose own would not do."""
    return _TITLES.get(kind)


def thing_of(prefix: str) -> str:
    """The word for a kind of things by the beginning of its ids: `relay` for `access`."""
    return _THINGS.get(prefix, prefix.replace("_", " "))


def text_of(kind: str, text: str, fields: Mapping[str, str], names: Mapping[str, str]) -> str:
    """The text of an event with names in the place of ids and codes. names: by id; what has none is called by its
    kind."""
    if not text or text == kind:
        text = words_of(kind, fields) or title_of(kind, (), fields)
    text = _CODES.sub(lambda found: conditions.heading_of(found[1]), text)
    text = _CPU_SLOT.sub(lambda found: f"{found[1]} CPU share {found[2]}", text)
    for one in sorted(names, key=len, reverse=True):
        text = text.replace(one, names[one])
    return ID.sub(lambda found: _nameless(found[0], is_first=not found.start()), text)


def _nameless(one: str, *, is_first: bool) -> str:
    thing = thing_of(one.partition("_")[0]) if "_" in one else "GPU"
    said = thing if thing == "work" else f"{'an' if thing[0] in 'aeio' else 'a'} {thing}"
    return said[0].upper() + said[1:] if is_first else said


def _sentence(text: str) -> str:
    plain = text.replace("_", " ").replace(".", " ")
    return plain[:1].upper() + plain[1:]
