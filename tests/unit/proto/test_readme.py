"""The page about the link says of every kind what the code says."""

from pathlib import Path

from windrow_proto.keys import SIGNED_KINDS
from windrow_proto.model import Kind
from windrow_proto.session import LANES, is_downward, is_upward

README = Path(__file__).parents[3] / "proto" / "README.md"


def test_the_table_of_kinds_is_true():
    rows = []
    for kind in Kind:
        if kind is Kind.UNSPECIFIED:
            continue
        sender = {(True, False): "agent", (False, True): "Master", (True, True): "both"}[
            is_upward(kind), is_downward(kind)
        ]
        proof = "Ed25519" if kind in SIGNED_KINDS else "HMAC"
        rows.append(f"| {kind.name} | {sender} | {', '.join(lane.name for lane in sorted(LANES[kind]))} | {proof} |")

    assert "\n".join(rows) in README.read_text()
