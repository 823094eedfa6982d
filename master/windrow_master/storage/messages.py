"""Messages of storage to the packages above it: what counts against the quota of an account. Pure."""

from dataclasses import dataclass

from windrow_master.store.messages import Question
from windrow_proto.ids import AccountId


@dataclass(frozen=True, slots=True)
class KeptByJobs(Question[int]):
    """Bytes of the folders, logs and files that the jobs of an account keep."""

    account_id: AccountId
