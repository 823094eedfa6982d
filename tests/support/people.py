"""People of a running market: accounts that an operator has added, each with a token of its own."""

from dataclasses import dataclass

from tests.support.stack import Stack
from windrow.client import Client
from windrow.config import Config


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with an account. url: of the Master."""

    name: str
    url: str
    token: str

    def client(self) -> Client:
        """A client that acts for this person."""
        return Client(Config(self.url, self.token))


def added(market: Stack, name: str, *roles: str, credit: str = "0") -> Person:
    """Add an account and open its sign-in link."""
    with market.client() as api:
        made = api.request("POST", "/accounts", body={"name": name, "roles": roles, "credit": credit})
        opened = api.request("POST", "/sign-in", body={"secret": made["link"].partition("#sign-in=")[2]})
    return Person(name, market.cli["url"], opened["token"]["token"])


def limited(market: Stack, name: str, *roles: str) -> Person:
    """The first account by a token of these roles alone; the token has this name."""
    with market.client() as api:
        made = api.request("POST", "/tokens", body={"name": name, "roles": roles, "expires_in_s": 86_400})
    return Person(name, market.cli["url"], made["token"])
