"""The Master of the machine room's tests: what it changes of the shipped one is there."""

from tests.support.hasty_purchases import HASTE


def test_every_wait_that_a_hasty_master_shortens_is_one_of_the_shipped_master() -> None:
    missing = [name for owner, name, _ in HASTE if not hasattr(owner, name)]
    assert not missing
