"""Values of the store's own tables: audit entries, events, operations, remembered answers."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from windrow_proto.ids import AccountId, EventId, OperationId

_JSON: Final = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"), check_circular=False)
CHAIN_START = bytes(32)
"""The hash that the first audit entry is chained to."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An entry of the audit log: actor, action, subject and reason; `chain` covers this entry and, through its
    predecessor, all before it."""

    number: int
    at_ns: int
    epoch: int
    actor: str
    action: str
    subject: str
    reason: str
    fields: Mapping[str, str]
    chain: bytes

    def link(self, previous: bytes) -> bytes:
        """Return the value that `chain` must have after `previous`."""
        content = [self.at_ns, self.epoch, self.actor, self.action, self.subject, self.reason, dict(self.fields)]
        text = _JSON.encode(content)
        return hashlib.sha256(previous + text.encode()).digest()


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """The filter of a list of the audit log; None asks for all. action: also of all below it, as `host` of
    `host.drain`."""

    subject: str | None = None
    actor: str | None = None
    action: str | None = None
    since_ns: int | None = None
    until_ns: int | None = None


@dataclass(frozen=True, slots=True)
class EventRow:
    """Something worth telling the people who look at its subjects; `number` grows and never repeats."""

    number: int
    id: EventId
    at_ns: int
    kind: str
    subjects: tuple[str, ...]
    text: str
    actor: str
    fields: Mapping[str, str]


class OperationState(StrEnum):
    """The state of a long action."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Operation:
    """A long action that was answered with 202; its subject says what is going on in detail. account_id: the owner of
    its subject. begun_by: an actor, of another project where the subject is shared; None: of an older release."""

    id: OperationId
    kind: str
    subject: str
    account_id: AccountId
    begun_by: str | None
    state: OperationState
    error_code: str | None
    error_detail: str | None
    created_at_ns: int
    done_at_ns: int | None

    def is_of(self, account_id: AccountId, actor: str) -> bool:
        """Return whether who acts in this account may read it."""
        return account_id == self.account_id or actor == self.begun_by


@dataclass(frozen=True, slots=True)
class RememberedAnswer:
    """The answer to one Idempotency-Key; `status` is None while (or if for ever) the outcome is not known."""

    account_id: AccountId
    key: str
    request_sha256: bytes
    epoch: int
    created_at_ns: int
    status: int | None
    headers: Mapping[str, str]
    body: bytes
