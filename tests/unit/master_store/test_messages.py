"""Messages between packages: heard in the sender's transaction, undone with it, and never sent to nobody."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.master_support import ManualClock, SeededRng, opened_store
from windrow_master.app import wiring
from windrow_master.store.messages import Fact, Messages, Question
from windrow_master.store.unit import UnitOfWork


@dataclass(frozen=True, slots=True)
class Said(Fact):
    text: str


@dataclass(frozen=True, slots=True)
class Length(Question[int]):
    text: str


def test_a_fact_is_told_to_every_handler_in_order_and_a_question_has_one_answer(tmp_path: Path) -> None:
    with opened_store(tmp_path) as store:
        heard: list[str] = []
        store.messages.on(Said, lambda uow, it: heard.append(f"first {it.text}"))
        store.messages.on(Said, lambda uow, it: heard.append(f"second {it.text}"))
        store.messages.answer(Length, lambda uow, it: len(it.text))
        store.write_now(lambda uow: uow.publish(Said("hello")), name="test")
        assert heard == ["first hello", "second hello"]
        assert store.read_now(lambda uow: uow.ask(Length("hello"))) == 5


def test_what_a_handler_raises_undoes_what_the_sender_wrote(tmp_path: Path) -> None:
    with opened_store(tmp_path) as store:

        def refuse(uow: object, it: Said) -> None:
            raise ValueError(it.text)

        def say(uow: UnitOfWork) -> None:
            uow.event("x.y", (), "text")
            uow.publish(Said("no"))

        store.messages.on(Said, refuse)
        with pytest.raises(ValueError, match="no"):
            store.write_now(say, name="test")
        assert store.read_now(lambda uow: list(uow.events.newest(limit=10))) == []


def test_a_message_that_nobody_handles_is_an_error_and_is_named(tmp_path: Path) -> None:
    with opened_store(tmp_path) as store:
        for act in (lambda uow: uow.publish(Said("hello")), lambda uow: uow.ask(Length("hello"))):
            with pytest.raises(KeyError):
                store.write_now(act, name="test")
    named = {name.rpartition(".")[2] for name in Messages().missing()}
    assert {"ReceiptTaken", "HostJoined", "DesiredOn"} <= named and "Said" not in named


def test_one_question_has_one_answer() -> None:
    messages = Messages()
    messages.answer(Length, lambda uow, it: 1)
    with pytest.raises(ValueError, match="Length has an answer already"):
        messages.answer(Length, lambda uow, it: 2)


def test_a_master_whose_wiring_lacks_a_handler_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring, "_register", lambda parts: None)
    with pytest.raises(LookupError, match="ReceiptTaken"):
        wiring.build(tmp_path, ManualClock(), SeededRng(1))
