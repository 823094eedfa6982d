"""Asks the metadata service of EC2 (IMDSv2) which machine this is and whether it is to be taken back.

Blocking, each call within seconds: a machine elsewhere has no such service, or one that never answers.
"""

import http.client
import time
from typing import Final

from windrow_agent.core.notices import Notice, instance_id, rebalance_notice, spot_notice
from windrow_proto.units import KIB

ADDRESS: Final = "169.254.169.254"
TIMEOUT_S: Final = 1.0
"""It answers within milliseconds."""
TRIES: Final = 3
PAUSE_S: Final = 0.5
"""For the id at the start, when the service may not be up yet."""
ANSWER_MAX: Final = 4 * KIB
TOKEN_LIFE_S: Final = 6 * 3600
_TOKEN: Final = "X-aws-ec2-metadata-token"


class MetadataService:
    """The service of this machine. Raises nothing: what it does not answer is not known."""

    def __init__(self, address: str = ADDRESS, port: int = 80) -> None:
        self._address, self._port = address, port
        self._token = ""

    def instance_id(self) -> str:
        """The id of this instance; empty: there is no such service."""
        for number in range(TRIES):
            time.sleep(PAUSE_S if number else 0)
            if found := instance_id(self._get("instance-id")):
                return found
        return ""

    def notice(self) -> Notice | None:
        """The most pressing notice that stands; None: there is none."""
        return spot_notice(self._get("spot/instance-action")) or rebalance_notice(
            self._get("events/recommendations/rebalance")
        )

    def _get(self, path: str) -> bytes:
        """The content; empty: none. A token that is no longer good is replaced once."""
        for _ in range(2):
            if not self._token:
                said = {f"{_TOKEN}-ttl-seconds": str(TOKEN_LIFE_S)}
                status, token = self._ask("PUT", "/latest/api/token", said)
                self._token = token.decode("ascii", "ignore").strip() if status == 200 else ""
                if not self._token:
                    return b""
            status, content = self._ask("GET", f"/latest/meta-data/{path}", {_TOKEN: self._token})
            if status != 401:
                return content if status == 200 else b""
            self._token = ""
        return b""

    def _ask(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self._address, self._port, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read(ANSWER_MAX)
        except (OSError, ValueError, http.client.HTTPException):
            return 0, b""
        finally:
            connection.close()
