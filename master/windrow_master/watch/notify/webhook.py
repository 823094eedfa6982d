"""Signs webhooks as Standard Webhooks says; the adapter of standardwebhooks."""

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from standardwebhooks import Webhook

from windrow_proto.units import SECOND

SECRET_BYTES: Final = 32
PREFIX: Final = "whsec_"


def secret_of(drawn: bytes) -> str:
    """A secret, as receivers' libraries take it. drawn: SECRET_BYTES random bytes."""
    return PREFIX + base64.b64encode(drawn).decode()


def headers(secrets: Sequence[str], message_id: str, body: str, now_ns: int) -> Mapping[str, str]:
    """The headers of one try, with one signature by each secret: receivers may know the newer or the older one."""
    at = datetime.fromtimestamp(now_ns // SECOND, UTC)
    return {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(now_ns // SECOND),
        "webhook-signature": " ".join(Webhook(one).sign(message_id, at, body) for one in secrets),
    }
