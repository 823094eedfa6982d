"""What an operator may say of a backend, and what is refused with the name of the field."""

import pytest

from tests.master_support import ManualClock
from windrow_master.hybrid.backends.kinds import KINDS, LEVELS, Level, kind_of
from windrow_master.prices.book import PriceBook
from windrow_proto.errors import InvalidInput, NotFound

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaA==\n-----END OPENSSH PRIVATE KEY-----\n"
EC2 = {"region": "eu-central-1"}
SSH = {"address": "10.0.0.7", "host_key": "ssh-ed25519 " + "A" * 68 + " root@box", "price_per_hour": "0.85"}
WRONG: tuple[tuple[str, dict[str, str], dict[str, str], str], ...] = (
    ("ec2", {}, {}, "region"),
    ("ec2", {"region": "Frankfurt"}, {}, "region"),
    ("ec2", EC2 | {"image": "ubuntu"}, {}, "image"),
    ("ec2", EC2 | {"disk_gib": "4"}, {}, "disk_gib"),
    ("ec2", EC2 | {"disk_gib": "-40"}, {}, "disk_gib"),
    ("ec2", EC2 | {"disk_gib": "٤٠"}, {}, "disk_gib"),
    ("ec2", EC2 | {"subnets": "subnet-1"}, {}, "subnets"),
    ("ec2", EC2 | {"endpoint": "file:///etc/passwd"}, {}, "endpoint"),
    ("ec2", EC2 | {"colour": "red"}, {}, "colour"),
    ("ec2", EC2 | {"image": "\0"}, {}, "image"),
    ("ec2", EC2, {"aws_access_key_id": "AKIA"}, "aws_secret_access_key"),
    ("ec2", EC2, {"private_key": KEY}, "private_key"),
    ("ssh", SSH, {}, "private_key"),
    ("ssh", SSH, {"private_key": "id_ed25519"}, "private_key"),
    ("ssh", SSH | {"address": "-oProxyCommand=reboot"}, {"private_key": KEY}, "address"),
    ("ssh", SSH | {"user": "root -v"}, {"private_key": KEY}, "user"),
    ("ssh", SSH | {"port": "0"}, {"private_key": KEY}, "port"),
    ("ssh", SSH | {"price_per_hour": "-1"}, {"private_key": KEY}, "price_per_hour"),
    ("ssh", SSH | {"price_per_hour": "1e9"}, {"private_key": KEY}, "price_per_hour"),
    ("ssh", SSH | {"currency": "euro"}, {"private_key": KEY}, "currency"),
    ("ssh", SSH | {"country": "Germany"}, {"private_key": KEY}, "country"),
    ("ssh", SSH | {"gpus": "1000000000", "gpu": "l40s"}, {"private_key": KEY}, "gpus"),
    ("ssh", SSH | {"gpus": "1"}, {"private_key": KEY}, "gpu"),
    ("ssh", SSH | {"gpu": "<b>", "gpus": "1"}, {"private_key": KEY}, "gpu"),
    ("ssh", SSH | {"host_key": "ssh-ed25519"}, {"private_key": KEY}, "host_key"),
    ("ssh", SSH | {"region": "x" * 20_000}, {"private_key": KEY}, "region"),
    ("modal", {"environment": "my env"}, {}, "environment"),
    ("modal", {"image": "python:3.12 slim"}, {}, "image"),
    ("modal", {}, {"token_id": "ak-1"}, "token_secret"),
    ("modal", {}, {"token_id": "1", "token_secret": "as-1"}, "token_id"),
    ("modal", {}, {"token_id": "ak-1", "token_secret": "sa-1"}, "token_secret"),
)


@pytest.mark.parametrize(("kind", "settings", "secrets", "field"), WRONG)
def test_what_cannot_be_is_refused_with_the_name_of_the_field(
    kind: str, settings: dict[str, str], secrets: dict[str, str], field: str
) -> None:
    with pytest.raises(InvalidInput) as wrong:
        KINDS[kind].read(settings, secrets)

    assert field in str(wrong.value)
    assert not [value for value in secrets.values() if value in str(wrong.value)]


@pytest.mark.parametrize(
    ("kind", "settings", "secrets"), [("ec2", EC2, {}), ("ssh", SSH, {"private_key": KEY}), ("modal", {}, {})]
)
def test_a_backend_is_opened_by_its_required_fields_alone_and_shows_no_secret(
    kind: str, settings: dict[str, str], secrets: dict[str, str]
) -> None:
    KINDS[kind].read(settings, secrets)

    found = KINDS[kind].open(settings, secrets, ManualClock(), PriceBook(()))

    assert found.kind == kind and found.list_lag_ns > 0
    assert "b3BlbnNzaA" not in repr(vars(found))


def test_the_defaults_that_are_shown_are_the_ones_that_are_used() -> None:
    for kind, settings, secrets in (("ec2", EC2, {}), ("ssh", SSH, {"private_key": KEY}), ("modal", {}, {})):
        shown = {field.name: field.default for field in KINDS[kind].settings if field.default}

        assert KINDS[kind].check(settings, secrets) == KINDS[kind].check(shown | settings, secrets)


def test_a_kind_that_is_not_known_is_not_found_and_every_level_has_its_sentence() -> None:
    with pytest.raises(NotFound, match="there are ec2, ssh, modal"):
        kind_of("colab")

    assert LEVELS.keys() == set(Level)
    assert all(kind.level_text == LEVELS[kind.level] for kind in KINDS.values())
