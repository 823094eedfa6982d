"""Messages of secrets to the packages above them: who names the secrets of a project. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windrow_master.secrets.model import SecretUser
from windrow_master.store.messages import Question
from windrow_proto.ids import AccountId


@dataclass(frozen=True, slots=True)
class SecretUsers(Question[Mapping[str, Sequence[SecretUser]]]):
    """Asks who names the secrets of a project, by the names of the secrets: jobs and clusters that are not over, and
    templates."""

    account_id: AccountId
