"""Recomputes the audit log's chain, and holds it against heads that somebody kept. Pure."""

from collections.abc import Iterable, Sequence

from windrow_master.audit.model import Head, Verdict
from windrow_master.store.model import AuditEntry


def judge(
    entries: Iterable[AuditEntry], previous: bytes, heads: Sequence[tuple[str, Head]], anchor: Head | None
) -> Verdict:
    """What these entries, in order, amount to after the chain `previous`; heads: by what each is called."""
    count, last = 0, None
    expected = {head.number: (name, head) for name, head in heads}
    for entry in entries:
        count += 1
        if entry.link(previous) != entry.chain:
            said = (
                f"Entry {entry.number} does not follow from the one before it: it was changed, moved or put in, "
                "or what stood before it is gone."
            )
            return Verdict(count, entry.number, said, None, anchor)
        for name, head in heads:
            if head.number == entry.number and head.chain != entry.chain:
                said = f"Entry {entry.number} is not the one that {name} names: the log was written anew."
                return Verdict(count, entry.number, said, None, anchor)
        expected.pop(entry.number, None)
        previous, last = entry.chain, Head(entry.number, entry.chain, entry.at_ns)
    missing = min(expected.values(), key=lambda found: found[1].number, default=None)
    if missing is not None:
        name, head = missing
        said = f"Entry {head.number}, which {name} names, is not there: the log's end was cut off."
        return Verdict(count, head.number, said, last, anchor)
    return Verdict(count, None, None, last, anchor)
