"""Writes the actions of the audit log for people: `token.revoke` is "Token revoked". Pure."""

from collections.abc import Mapping
from typing import Final

from windrow_master.api.event_texts import known_title, thing_of

_ACTIONS: Final[Mapping[str, str]] = {
    "account.link": "Sign-in link made",
    "account.sign_in": "Signed in by a link",
    "alert.silence_add": "Silence added",
    "alert.silence_remove": "Silence removed",
    "ask.remove": "Own price removed",
    "ask.set": "Own price set",
    "audit.reanchor": "Audit log anchored anew",
    "cluster.again": "Machine's place tried again",
    "cluster.assembled": "Machine's members are ready to meet",
    "cluster.broken": "Machine failed",
    "cluster.done": "Machine's command succeeded",
    "cluster.gone": "Machine is gone from its hosts",
    "cluster.granted": "Machine got its place",
    "cluster.place": "Place sought for a machine",
    "cluster.ready": "Machine is running",
    "cluster.replace": "Lost members of a machine replaced",
    "cluster.undone": "Machine's command failed",
    "command.issue": "Command sent to a host",
    "delivery.again": "Message sent again",
    "fair_share.set": "Fair share set",
    "host.prove": "Test run started",
    "host.verify": "Verification started",
    "job.again": "Job tried again",
    "job.collect": "Job's files collected",
    "job.requeue": "Job put back into the queue",
    "job.runs": "Job is running",
    "job.top": "Job put first in its project",
    "ledger.mint": "Test credits granted",
    "ledger.settle": "Debt settled",
    "limit.remove": "Spending limits removed",
    "limit.set": "Spending limits set",
    "notebook.open": "Jupyter opened",
    "organisation.owner": "Owner of an organisation made",
    "project.offer_end": "Offer of a project ended",
    "project.purge": "Project erased",
    "session.begin": "Signed in",
    "session.end": "Signed out",
    "session.prove": "Signed in again",
    "term.begin": "Master began to lead",
    "user.alert_mail": "Alerts by mail set",
    "user.erase": "User deleted",
    "user.factor_off": "Second factor removed",
    "user.factor_on": "Second factor set up",
    "user.password": "Password set",
    "user.password_link": "Password link made",
}
"""Titles of audit actions for which the title of the event, or the thing and the verb, would be wrong."""
_DONE: Final[Mapping[str, str]] = {
    "admit": "admitted", "begin": "begun", "bind": "bound", "cancel": "cancelled", "enrol": "enrolled",
    "find": "found", "give_up": "given up", "heard": "heard", "hold": "held", "lose": "lost", "lost": "lost",
    "make": "made", "maintain": "put in maintenance", "ran": "running", "scrub": "scrubbed", "set": "set",
    "silent": "silent", "stop": "stopped", "submit": "submitted", "transfer": "transferred", "unbind": "unbound",
    "withdraw": "withdrawn",
}  # fmt: skip
"""Verbs that are not regular, and words that are none."""


def action_title(action: str) -> str:
    """An action in a few words; one that is not known here with its own words."""
    known = _ACTIONS.get(action) or known_title(action)
    if known is not None:
        return known
    thing, _, verb = action.partition(".")
    said = f"{thing_of(thing)} {_past(verb)}".strip()
    return said[:1].upper() + said[1:]


def _past(verb: str) -> str:
    if verb in _DONE or "_" in verb or verb.endswith("ed"):
        return _DONE.get(verb, verb.replace("_", " "))
    return f"{verb.removesuffix('e')}ed"
