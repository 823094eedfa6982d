"""What the HTTP API answers about accounts that operators look after, as models for its description."""

from typing import Annotated

from pydantic import Field

from windrow_master.api.out import AccountOut, BalanceNowOut, Out, Time, TokenMadeOut
from windrow_master.identity.model import AccountState, Role


class PersonOut(Out):
    """An account, whether it may do anything, and what it can spend."""

    id: str
    name: str
    roles: list[Role]
    state: AccountState
    balance: BalanceNowOut
    created_at: Time


class PersonMadeOut(Out):
    """An account and the link by which its person signs in."""

    account: PersonOut
    link: Annotated[str, Field(description="A URL that works once, shown this once")]
    link_expires_at: Time


class LinkRedeemedOut(Out):
    """What a sign-in link opened."""

    account: AccountOut
    roles: list[Role]
    token: TokenMadeOut
