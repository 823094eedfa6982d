"""Routes of the audit log: read it, and verify its chain."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from windrow_master.api import answers
from windrow_master.api.answers import Out, Read, Time, Written
from windrow_master.api.audit_texts import action_title
from windrow_master.api.bodies import Body
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.event_names import audit_names, mentioned
from windrow_master.api.paging import Cursor, Limit, Moment, moment, page, read_number
from windrow_master.api.route import Routes
from windrow_master.audit.model import Head
from windrow_master.identity.decide import Permission
from windrow_master.store.model import AuditEntry, AuditQuery
from windrow_proto.errors import InvalidInput

route = Routes("audit")

NUMBER_MAX = 2**53
"""Numbers that JavaScript still counts exactly."""

Text = Annotated[str | None, Query(min_length=1, max_length=200)]


Chain = Annotated[str, Field(description="The hash of this entry and all before it, hexadecimal"), Written(bytes.hex)]


class AuditOut(Out):
    """An entry of the audit log: the actor, the action, the subject and the reason."""

    number: int
    at: Time
    epoch: int
    actor: str
    action: str
    title: Annotated[str, Field(description="The action in words"), Read(lambda entry: action_title(entry.action))]
    subject: str
    reason: str
    fields: dict[str, str]
    chain: Chain
    names: Annotated[
        dict[str, str],
        Field(description="Names by id, for the actor, the subject and the ids in reason and fields"),
        Read(lambda entry: {}),
    ]


class AuditHeadOut(Out):
    """The end of the audit log at some time."""

    number: int
    chain: Chain
    at: Time


class AuditVerdictOut(Out):
    """The result of a check of the audit log."""

    intact: bool
    entries: int
    first_broken: int | None
    problem: str | None
    head: AuditHeadOut | None
    anchor: AuditHeadOut | None


@route.get("/audit", may=Permission.AUDIT_READ, answer=answers.Page[AuditOut])
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
    """The audit log: actor, action, subject and reason of each entry, the latest first. `action` may be a beginning:
    `host.`."""
    before = read_number(cursor)
    word = action.removesuffix("*") if action is not None else None
    wanted = AuditQuery(subject, actor, word or None, moment("since", since), moment("until", until))
    found = await services.audit.list(wanted, before, limit + 1)
    names = await services.store.read(lambda uow: audit_names(services, uow, found))

    def entry_json(entry: AuditEntry) -> dict[str, Any]:
        return AuditOut.of(entry, names={one: names[one] for one in mentioned(entry) if one in names})

    return page(found, limit, entry_json, lambda entry: str(entry.number))


@route.get("/audit/verify", may=Permission.AUDIT_READ, answer=AuditVerdictOut)
async def verify_audit(
    services: Serving,
    number: Annotated[int | None, Query(ge=1, le=NUMBER_MAX)] = None,
    chain: Annotated[str | None, Query(pattern="^[0-9a-f]{64}$")] = None,
) -> Any:
    """Recompute the whole chain and compare it with the anchor, and with a head that you kept (`number`, `chain`)."""
    if (number is None) != (chain is None):
        raise InvalidInput("Give number and chain together: they are the head that you kept.")
    kept = None if number is None or chain is None else Head(number, bytes.fromhex(chain), 0)
    return AuditVerdictOut.of(await services.audit.verify(kept))


class ReanchorBody(Body):
    """The reason to take the log as it is."""

    reason: Annotated[str, Field(min_length=1, max_length=300)]


@route.post("/audit/reanchor", may=Permission.AUDIT_ANCHOR, answer=AuditVerdictOut)
async def reanchor_audit(services: Serving, principal: Asking, body: ReanchorBody) -> Any:
    """Take the log as it is from now on, and anchor its end anew; what was found wrong is written into it."""
    return AuditVerdictOut.of(await services.audit.reanchor(principal.actor, body.reason))
