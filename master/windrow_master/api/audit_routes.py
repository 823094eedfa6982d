"""Routes of the audit log: read it, and verify its chain."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from windrow_master.api import out
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.idempotency import make_router
from windrow_master.api.identity_routes import Body
from windrow_master.api.paging import Cursor, Limit, page, read_number
from windrow_master.audit.model import Head, Verdict
from windrow_master.store.model import AuditEntry, AuditQuery
from windrow_proto.errors import InvalidInput
from windrow_proto.units import parse_time, time_text

router = make_router("audit")

NUMBER_MAX = 2**53
"""Numbers that JavaScript still counts exactly."""

Text = Annotated[str | None, Query(min_length=1, max_length=200)]
Moment = Annotated[str | None, Query(max_length=40)]


@router.get("/audit", responses=out.AUDIT)
async def audit(
    services: Serving,
    subject: Text = None,
    actor: Text = None,
    action: Text = None,
    since: Moment = None,
    until: Moment = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Any:
    """Who did what to which subject and why, the latest first. `action` may be a beginning: `host.`."""
    before = read_number(cursor)
    word = action.removesuffix("*") if action is not None else None
    wanted = AuditQuery(subject, actor, word or None, _moment("since", since), _moment("until", until))
    found = await services.audit.list(wanted, before, limit + 1)
    return page(found, limit, _entry_json, lambda entry: str(entry.number))


@router.get("/audit/verify", responses=out.AUDIT_VERDICT)
async def verify_audit(
    services: Serving,
    number: Annotated[int | None, Query(ge=1, le=NUMBER_MAX)] = None,
    chain: Annotated[str | None, Query(pattern="^[0-9a-f]{64}$")] = None,
) -> Any:
    """Recompute the whole chain and compare it with the anchor, and with a head that you kept (`number`, `chain`)."""
    if (number is None) != (chain is None):
        raise InvalidInput("Give number and chain together: they are the head that you kept.")
    kept = None if number is None or chain is None else Head(number, bytes.fromhex(chain), 0)
    return _verdict_json(await services.audit.verify(kept))


class ReanchorBody(Body):
    """Why the log is taken as it is."""

    reason: Annotated[str, Field(min_length=1, max_length=300)]


@router.post("/audit/reanchor", response_model=out.AuditVerdictOut)
async def reanchor_audit(services: Serving, principal: Asking, body: ReanchorBody) -> Any:
    """Take the log as it is from now on, and anchor its end anew; what was found wrong is written into it."""
    return _verdict_json(await services.audit.reanchor(principal.actor, body.reason))


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "intact": verdict.intact,
        "entries": verdict.entries,
        "first_broken": verdict.first_broken,
        "problem": verdict.problem,
        "head": _head_json(verdict.head),
        "anchor": _head_json(verdict.anchor),
    }


def _moment(name: str, text: str | None) -> int | None:
    try:
        # A `+` of an offset arrives as a space from callers that did not escape it.
        return None if text is None else parse_time(text.replace(" ", "+"))
    except (ValueError, OverflowError):
        raise InvalidInput(f"{name} is not a time such as 2026-01-31T12:00:00Z.") from None


def _entry_json(entry: AuditEntry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "at": time_text(entry.at_ns),
        "epoch": entry.epoch,
        "actor": entry.actor,
        "action": entry.action,
        "subject": entry.subject,
        "reason": entry.reason,
        "fields": dict(entry.fields),
        "chain": entry.chain.hex(),
    }


def _head_json(head: Head | None) -> dict[str, Any] | None:
    return None if head is None else {"number": head.number, "chain": head.chain.hex(), "at": time_text(head.at_ns)}
