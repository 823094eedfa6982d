"""The index finds the route that trying all of them in their order finds, and leaves the rest to them."""

import re
from collections.abc import Iterator
from inspect import iscoroutinefunction
from typing import Any

import pytest
from fastapi.dependencies.models import Dependant
from starlette.routing import BaseRoute, Match, Route

from windrow_master.api.app import _included
from windrow_master.api.route import DeferredRoute
from windrow_master.api.route_index import RouteIndex

INDEX, *ROUTES = _included()


def asked(method: str, path: str) -> dict[str, object]:
    return {"type": "http", "method": method, "path": path, "root_path": "", "headers": []}


def first(scope: dict[str, object]) -> BaseRoute | None:
    """The route that is found without an index."""
    return next((one for one in ROUTES if one.matches(dict(scope))[0] is Match.FULL), None)


def test_each_path_leads_to_the_route_that_is_first_without_the_index() -> None:
    assert isinstance(INDEX, RouteIndex)
    for route in ROUTES:
        if isinstance(route, Route):
            scope = asked(min(route.methods or {"GET"}), re.sub(r"\{[^}]*\}", "one", route.path))
            match, found = INDEX.matches(scope)
            assert (match, found["windrow.route"]) == (Match.FULL, first(scope)), route.path


@pytest.mark.parametrize(
    ("method", "path"),
    [("PATCH", "/api/v1/clusters"), ("GET", "/api/v1/nothing"), ("GET", "/api/v1"), ("GET", ""), ("GET", "//")],
)
def test_it_leaves_to_the_others_what_is_no_whole_match(method: str, path: str) -> None:
    match, found = INDEX.matches(asked(method, path))
    linear = first(asked(method, path))
    assert (match is Match.NONE) == (linear is None) and found.get("windrow.route") is linear


def test_every_route_of_the_api_has_fixed_first_parts() -> None:
    """Else it is tried for each request."""
    open_ = [one.path for one in INDEX._open if isinstance(one, Route)]  # type: ignore[attr-defined]
    assert not [path for path in open_ if path.startswith("/api/")], open_


def test_nothing_that_a_route_depends_on_takes_a_thread() -> None:
    """FastAPI runs in a thread of its own whatever does not await; each costs more than most of them do."""

    def calls(found: Dependant) -> Iterator[Any]:
        yield found.call
        for one in found.dependencies:
            yield from calls(one)

    for route in ROUTES:
        if isinstance(route, DeferredRoute):
            for call in calls(route.made.dependant):
                assert iscoroutinefunction(call) or iscoroutinefunction(type(call).__call__), (route.path, call)
