"""The parts that request bodies share: their base class, money, a reason, a registry's login."""

from typing import Annotated, Any, Final

from fastapi import Body as FromBody
from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, SecretStr
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from windrow_proto.errors import InvalidInput
from windrow_proto.sealed import RegistryLogin
from windrow_proto.units import MICROCENTS_PER_UNIT, Microcents, money_text, parse_money

MONEY_MAX: Final = Microcents(10**9 * MICROCENTS_PER_UNIT)
"""More than anybody has; a hundred times of it still fits 64 bits."""

GivenMoney = Annotated[str, Field(max_length=30)]
"""A decimal amount, which `money_of` reads."""


def _be_strict(schema: Any) -> None:
    # 7.0 stays a whole number, as JSON has no other kind.
    if isinstance(schema, list | tuple):
        for one in schema:
            _be_strict(one)
    elif isinstance(schema, dict):
        for one in schema.values():
            _be_strict(one)
        if schema.get("type") == "bool":
            schema["strict"] = True
        elif schema.get("type") in ("float", "int"):
            number = dict(schema)
            schema.clear()
            schema |= core_schema.no_info_before_validator_function(_number, number)


def _number(given: Any) -> Any:
    if isinstance(given, bool | str):
        raise PydanticCustomError("number_type", "Input should be a number")
    return given


class Body(BaseModel):
    """A request's body: unknown fields are refused, so that a misspelt one is not silently ignored. A number is a JSON
    number, and true or false is neither one nor a text."""

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Not by the setting `strict`, which would refuse the texts of enumerations as well."""
        schema = handler(source)
        _be_strict(schema)
        return schema


class RegistryLoginBody(Body):
    """The login that is shown to the registry of a private image."""

    username: Annotated[str, Field(min_length=1, max_length=256)]
    password: Annotated[SecretStr, Field(min_length=1, max_length=8_192)]

    def parsed(self) -> RegistryLogin:
        """The same as a value."""
        return RegistryLogin(self.username, self.password.get_secret_value())


class Reason(Body):
    """The reason to change a host's state; it is kept in the audit log and shown."""

    reason: Annotated[str, Field(max_length=300)] = ""


Given = Annotated[Reason, FromBody()]


def login_of(shown: RegistryLoginBody | None) -> RegistryLogin | None:
    """A registry's login in a request."""
    return None if shown is None else shown.parsed()


def money_if(field: str, text: str | None) -> Microcents | None:
    """As `money_of`, where an amount was given."""
    return None if text is None else money_of(field, text)


def money_of(field: str, text: str) -> Microcents:
    """An amount in a request, 0 or more; InvalidInput for what is none."""
    try:
        amount = parse_money(text)
    except ValueError as error:
        raise InvalidInput(f"{field}: {error}.") from None
    if not 0 <= amount <= MONEY_MAX:
        raise InvalidInput(f"{field}: An amount of money is between 0 and {money_text(MONEY_MAX)}.")
    return amount
