"""Objects of somebody's packages as plain data: their attributes, where the host is not trusted to make the objects.

A result of Ray Tune, say, is read without a line of Ray's code: what it held can be looked at, and no more.
"""

import io
import pickle
import reprlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Final

from windrow.errors import UntrustedResult
from windrow.remote.code import is_installed
from windrow.remote.unpickling import Careful, Find, is_protocol
from windrow.telling import tell

SHOWN_MAX: Final = 12
"""Attributes in a text of such an object."""


class Unmade:
    """An object that was not made here. It has the attributes that came, and none of the methods."""

    __slots__ = ("_held", "_of")

    def __init__(self, of: str, held: dict[str, Any]) -> None:
        """of: its class, or the function that would make it."""
        self._of, self._held = of, held

    def __getattr__(self, name: str) -> Any:
        held, of = object.__getattribute__(self, "_held"), object.__getattribute__(self, "_of")
        if name in held and not is_protocol(name):
            return held[name]
        raise AttributeError(
            f"{of} came as plain data: it has {', '.join(held) or 'nothing'}, and no {name}. For the object itself, if "
            "you trust this host as your own machine: windrow.cluster(..., trusts_host=True)."
        )

    def __dir__(self) -> Iterable[str]:
        return sorted(self._held)

    def __repr__(self) -> str:
        shown = (f"{name}={reprlib.repr(value)}" for name, value in islice(self._held.items(), SHOWN_MAX))
        return f"<{self._of} as plain data: {', '.join(shown)}>"


class _Call(Unmade):
    """What a function would make: of use inside an object only."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _Name:
    """A class or a function that is not looked up."""

    text: str


def read(data: bytes | bytearray, find: Find, refused: UntrustedResult) -> Any:
    """The result, objects of packages as plain data; raises `refused` where it holds more than objects and values."""
    try:
        found = _Reader(io.BytesIO(data), find).load()
    except Exception:
        raise refused from None
    outer = _outer(found)
    if not outer or any(isinstance(one, _Name | _Call) for one in outer):
        raise refused
    names = ", ".join(sorted({one._of for one in outer}))
    tell(f"windrow: {names} came as plain data; for the object itself: windrow.cluster(..., trusts_host=True)")
    return found


def _outer(found: Any) -> list[Any]:
    """All that was not made and is inside of nothing else that was not."""
    left, seen, outer = [found], set(), []
    while left:
        one = left.pop()
        if isinstance(one, Unmade | _Name):
            outer.append(one)
        elif id(one) not in seen and isinstance(one, list | tuple | set | frozenset | dict):
            seen.add(id(one))
            left += [*one.keys(), *one.values()] if isinstance(one, dict) else one
    return outer


def _is_of_a_package(module: str) -> bool:
    """True if it is neither Python's, nor ours, nor the caller's own, who is told that it was not sent."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top in ("__main__", "windrow", "cloudpickle"):
        return False
    file = getattr(sys.modules.get(top), "__file__", None)
    if file is None:
        return True
    return is_installed(Path(file).resolve()) or not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)


class _Reader(Careful):
    dispatch: ClassVar[Any] = dict(Careful.dispatch)

    def find_class(self, module: str, name: str) -> Any:
        """Returns what the pickle names, or the name alone."""
        try:
            return super().find_class(module, name)
        except UntrustedResult:
            if not _is_of_a_package(module):
                raise
            return _Name(f"{module}.{name}")

    def load_newobj(self) -> None:
        """Make an object, or note what it is."""
        stack: list[Any] = self.stack  # type: ignore[attr-defined]  # the library's own, as all below
        if not isinstance(stack[-2], _Name):
            super().load_newobj()
            return
        args, name = stack.pop(), stack.pop().text
        stack.append(Unmade(name, {"args": args} if args else {}))

    def load_reduce(self) -> None:
        """Call a function, or note which would be called."""
        stack: list[Any] = self.stack  # type: ignore[attr-defined]
        if not isinstance(stack[-2], _Name):
            super().load_reduce()
            return
        args, name = stack.pop(), stack.pop().text
        stack.append(_Call(name, {"args": args}))

    def load_build(self) -> None:
        """Fill an object with what it held."""
        stack: list[Any] = self.stack  # type: ignore[attr-defined]
        if not isinstance(stack[-2], Unmade):
            super().load_build()
            return
        state, made = stack.pop(), stack[-1]
        parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
        for part in parts:
            is_named = isinstance(part, dict) and all(isinstance(name, str) for name in part)
            made._held.update(part if is_named else {"state": part} if part is not None else {})

    dispatch |= {pickle.NEWOBJ[0]: load_newobj, pickle.REDUCE[0]: load_reduce, pickle.BUILD[0]: load_build}
