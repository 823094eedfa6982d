"""Messages between packages, in the sender's transaction: facts that are published, and questions with one answer.

A package calls what stands below it. What concerns a package above it is a message: the sender's package defines the
type, app/wiring.py registers who handles it, and a type without a handler fails the start (`missing`).
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from windrow_master.store.unit import UnitOfWork

PRODUCT = __name__.partition(".")[0]
T = TypeVar("T")
"""The type of an answer."""
F = TypeVar("F", bound="Fact")
Q = TypeVar("Q", bound="Question[Any]")


class Fact:
    """Something has happened. Handled in the order of registration; what a handler raises undoes the transaction."""

    __slots__ = ()


class Question(Generic[T]):
    """Something that a package above knows; T is the type of the answer."""

    __slots__ = ()


class Messages:
    """The handlers of each message. Registered while the Master is put together, before its loop runs."""

    def __init__(self) -> None:
        self._handlers: dict[type[Fact], list[Callable[[UnitOfWork, Any], None]]] = {}
        self._answers: dict[type[Question[Any]], Callable[[UnitOfWork, Any], Any]] = {}

    def on(self, kind: type[F], handler: "Callable[[UnitOfWork, F], None]") -> None:
        """Call `handler` in the transaction of whoever publishes a fact of this kind."""
        self._handlers.setdefault(kind, []).append(handler)

    def answer(self, kind: type[Q], handler: "Callable[[UnitOfWork, Q], Any]") -> None:
        """Let `handler` answer this kind of question. Raises ValueError where another one does already."""
        if kind in self._answers:
            raise ValueError(f"{kind.__name__} has an answer already.")
        self._answers[kind] = handler

    def publish(self, uow: "UnitOfWork", fact: Fact) -> None:
        """Tell every handler. Raises KeyError where there is none."""
        for handler in self._handlers[type(fact)]:
            handler(uow, fact)

    def ask(self, uow: "UnitOfWork", question: Question[T]) -> T:
        """The answer. Raises KeyError where nobody answers this kind."""
        answer: T = self._answers[type(question)](uow, question)
        return answer

    def missing(self) -> Iterable[str]:
        """Names of the product's kinds that have no handler."""
        # By name: a dataclass with slots leaves the class that it was made from among the subclasses.
        handled = {_name(kind) for kind in (*self._handlers, *self._answers)}
        defined = {_name(kind) for kind in (*Fact.__subclasses__(), *Question.__subclasses__())}
        yield from sorted(name for name in defined - handled if name.startswith(PRODUCT))


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
