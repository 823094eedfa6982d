"""Promises of the Master's configuration: flags over environment, refused with a sentence, printable."""

from pathlib import Path

import pytest

from windrow_master.config import parse
from windrow_master.fleet.bandwidth_schedule import MEASURE_CAP_BYTES
from windrow_proto.errors import InvalidInput
from windrow_proto.master_process import without_secrets
from windrow_proto.units import MIB


def test_the_defaults_listen_on_this_machine_only(tmp_path: Path) -> None:
    config = parse(["--data-dir", str(tmp_path)], {})

    assert (config.listen, config.public, config.http_port) == ("127.0.0.1", "127.0.0.1", None)
    assert config.database == f"sqlite:///{tmp_path}/master.sqlite3"


def test_flags_win_over_the_environment(tmp_path: Path) -> None:
    environment = {"WINDROW_LISTEN": "10.0.0.1", "WINDROW_PUBLIC": "a.example", "WINDROW_DATA_DIR": str(tmp_path / "e")}

    config = parse(["--data-dir", str(tmp_path / "f"), "--listen", "0.0.0.0"], environment)

    assert (config.listen, config.public, config.data_dir) == ("0.0.0.0", "a.example", tmp_path / "f")


def test_a_url_names_the_database_and_others_are_refused_in_words(tmp_path: Path) -> None:
    here = parse([], {"WINDROW_DATABASE_URL": f"sqlite:///{tmp_path}/x.sqlite3"})
    assert here.database == f"sqlite:///{tmp_path}/x.sqlite3"
    there = parse([], {"WINDROW_DATABASE_URL": "postgresql+psycopg://user@db/windrow"})
    assert there.database == "postgresql+psycopg://user@db/windrow"

    with pytest.raises(InvalidInput, match="mysql database") as refused:
        parse([], {"WINDROW_DATABASE_URL": "mysql://user:hunter2@db/windrow"})
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["user:canary@db:5432/windrow", "user@db/windrow?password=canary", "/w?password=canary"]
)
def test_the_password_of_the_database_is_never_printed(url: str) -> None:
    printed = str(parse([], {"WINDROW_DATABASE_URL": f"postgresql+psycopg://{url}"}).printable())

    assert "canary" not in printed
    assert "postgresql+psycopg://" in printed


@pytest.mark.parametrize("arguments", [["--listen", "a b"], ["--public", "evil\n"], ["--http-port", "70000"]])
def test_what_is_wrong_is_refused_by_its_flag(arguments: list[str]) -> None:
    with pytest.raises(InvalidInput, match=arguments[0]):
        parse(arguments, {})


def test_a_certificate_and_its_key_are_given_together(tmp_path: Path) -> None:
    both = parse(["--tls-key-file", "key.pem"], {"WINDROW_TLS_CERT_FILE": str(tmp_path / "chain.pem")})
    assert both.tls_files == (tmp_path / "chain.pem", Path("key.pem").absolute())
    assert parse([], {}).tls_files is None
    with pytest.raises(InvalidInput, match="belong together"):
        parse([], {"WINDROW_TLS_KEY_FILE": "key.pem"})


def test_networks_that_webhooks_may_go_to_are_named_and_never_everybody() -> None:
    config = parse([], {"WINDROW_EGRESS_ALLOW": "10.20.0.0/16, fd00::/8"})
    assert config.printable()["egress_allow"] == "10.20.0.0/16 fd00::/8"
    with pytest.raises(InvalidInput, match=r"WINDROW_EGRESS_ALLOW 0\.0\.0\.0/0 is the network of everybody"):
        parse([], {"WINDROW_EGRESS_ALLOW": "0.0.0.0/0"})


def test_the_printed_configuration_is_plain_values() -> None:
    printed = parse([], {}).printable()

    assert all(value is None or isinstance(value, str | int) for value in printed.values())


def test_a_bus_is_named_by_url_or_by_a_file_that_holds_it_and_its_password_is_never_printed(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("rediss://:canary@cache:6379/1\n")

    plain = parse([], {"WINDROW_REDIS_URL": "redis://user:canary@cache:6379/0"})
    filed = parse([], {"WINDROW_REDIS_URL_FILE": str(tmp_path / "url")})

    assert parse([], {}).redis_url == ""
    assert plain.redis_url == "redis://user:canary@cache:6379/0"
    assert filed.redis_url == "rediss://:canary@cache:6379/1"
    assert "canary" not in str(plain.printable()) + str(filed.printable())
    assert plain.printable()["redis_url"] == "redis://user@cache:6379/0"


@pytest.mark.parametrize(
    "environment",
    [
        {"WINDROW_REDIS_URL": "http://user:canary@cache/"},
        {"WINDROW_REDIS_URL": "redis://:canary@cache/", "WINDROW_REDIS_URL_FILE": "/x"},
        {"WINDROW_REDIS_URL_FILE": "/nowhere/at/all"},
        {"WINDROW_RATE_LIMITS": "sometimes"},
        {"WINDROW_MEASURE_MIB": "0"},
        {"WINDROW_AUDIT_DAYS": "0"},
        {"WINDROW_EVENTS_DAYS": "-1"},
        {"WINDROW_MEASURE_MIB": "4e3"},
        {"WINDROW_MEASURE_MIB": "5000"},
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused_by_its_name_and_without_its_value(
    environment: dict[str, str],
) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse([], environment)

    assert next(iter(environment)).removesuffix("_FILE") in str(refused.value)
    assert "canary" not in str(refused.value)


def test_a_measurement_of_bandwidth_moves_what_it_always_did_unless_told_otherwise() -> None:
    assert parse([], {}).measure_mib * MIB == MEASURE_CAP_BYTES
    assert parse([], {"WINDROW_MEASURE_MIB": "4"}).measure_mib == 4
    kept = parse([], {"WINDROW_AUDIT_DAYS": "400", "WINDROW_EVENTS_DAYS": "30"}).retention
    assert (kept.audit_days, kept.events_days) == (400, 30)


def test_rate_limits_are_on_unless_switched_off(tmp_path: Path) -> None:
    assert parse([], {}).rate_limits
    assert not parse([], {"WINDROW_RATE_LIMITS": "off"}).rate_limits


def test_of_a_masters_environment_other_daemons_get_all_but_what_may_be_a_secret() -> None:
    secrets = {
        "WINDROW_DATABASE_URL": "postgresql+psycopg://user:canary@db/windrow",
        "WINDROW_REDIS_URL": "redis://:canary@bus",
        "WINDROW_ARTEFACTS_URL": "s3://bucket/under",
        "WINDROW_S3_ACCESS_KEY": "canary",
        "WINDROW_S3_SECRET_KEY": "canary",
        "WINDROW_METRICS_WRITE_URL": "http://user:canary@metrics/api/v1/write",
        "WINDROW_METRICS_URL": "http://user:canary@metrics/api/v1",
        "WINDROW_METRICS_TOKEN": "canary",
        **dict.fromkeys(
            ("AWS_SECRET_ACCESS_KEY", "AZURE_CLIENT_SECRET", "DIGITALOCEAN_TOKEN", "OS_PASSWORD"), "canary"
        ),
        **dict.fromkeys(("GOOGLE_APPLICATION_CREDENTIALS", "MODAL_TOKEN_ID", "SCW_SECRET_KEY"), "canary"),
        "HCLOUD_TOKEN": "canary",
        "PATH": "/usr/bin",
    }
    parse([], secrets)

    assert without_secrets(secrets) == {"WINDROW_ARTEFACTS_URL": "s3://bucket/under", "PATH": "/usr/bin"}


def test_trusted_proxies_come_from_flags_or_the_environment() -> None:
    given = {"WINDROW_TRUSTED_PROXIES": "10.0.0.5, fd00::/8"}
    assert [str(one) for one in parse([], given).trusted_proxies] == ["10.0.0.5/32", "fd00::/8"]
    flags = ["--trusted-proxy", "192.0.2.1", "--trusted-proxy", "10.0.0.0/24"]
    assert [str(one) for one in parse(flags, given).trusted_proxies] == ["192.0.2.1/32", "10.0.0.0/24"]
    assert parse([], {}).trusted_proxies == ()


def test_a_folder_of_prices_is_named_by_flag_or_environment_and_by_itself_there_is_none(tmp_path: Path) -> None:
    assert parse([], {}).prices is None
    assert parse([], {"WINDROW_PRICES": ""}).prices is None
    assert parse([], {"WINDROW_PRICES": str(tmp_path)}).prices == tmp_path.resolve()
    assert parse(["--prices", str(tmp_path)], {"WINDROW_PRICES": "/other"}).prices == tmp_path.resolve()


def test_mail_is_sent_by_the_server_of_one_url_which_may_stand_in_a_file(tmp_path: Path) -> None:
    url = "smtp://ada:secret-word@mail.example.org?from=market@example.org"
    (tmp_path / "url").write_text(url + "\n")
    assert parse([], {}).mail is None
    found = parse([], {"WINDROW_SMTP_URL_FILE": str(tmp_path / "url")})
    assert found.mail == parse([], {"WINDROW_SMTP_URL": url}).mail
    assert found.printable()["mail"] == "mail.example.org:587 from market@example.org"
    assert "secret-word" not in str(found.printable())
