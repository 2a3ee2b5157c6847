"""The service's certificate: what is refused at the start, and what a change of its files does."""

import ssl
from datetime import timedelta
from pathlib import Path

import pytest

from clickclock.app.certificates import ENDS_SOON, Certificates, key_is_open
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config, load
from clickclock.foundation.errors import ConfigurationError
from tests.authority import Authority, Pair

pytestmark = pytest.mark.needs("openssl")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(Path(tmp_path_factory.mktemp("authority")))


def using(pair: Pair, **others: object) -> Config:
    return load(None, {}, {"tls_certificate": pair.certificate, "tls_key": pair.key, **others})


def opened(config: Config) -> Certificates:
    certificates = Certificates.of(config, knows_clients=True)
    assert certificates is not None
    return certificates


def test_without_a_certificate_there_is_none() -> None:
    assert Certificates.of(Config()) is None
    assert Config().scheme == "http"


def test_tls_is_1_2_or_newer_and_its_end_is_known(authority: Authority) -> None:
    certificates = opened(using(authority.pair("one", days=20)))
    now = SystemClock().now()
    assert certificates._pair.context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert certificates.findings(now) == ()
    (soon,) = certificates.findings(now + timedelta(days=20) - ENDS_SOON)
    assert (soon.code, "ends at" in soon.message) == ("certificateEnds", True)
    (unfit,) = opened(using(authority.pair("person", purpose="clientAuth"))).findings(now)
    assert unfit.message == "Nobody believes the certificate: unsuitable certificate purpose."


def test_what_cannot_be_used_is_refused_with_the_setting_and_what_to_do(authority: Authority, tmp_path: Path) -> None:
    one, two, nothing = authority.pair("one"), authority.pair("two"), tmp_path / "none.pem"
    empty = tmp_path / "empty.pem"
    empty.write_text("no certificate\n", encoding="utf-8")
    locked = tmp_path / "locked.key"
    locked.write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\nx\n", encoding="utf-8")
    for pair, client_ca, field, said in (
        (Pair(nothing, one.key), None, "tls_certificate", "cannot be read: No such file"),
        (Pair(one.certificate, nothing), None, "tls_key", "cannot be read: No such file"),
        (Pair(empty, one.key), None, "tls_certificate", "is no certificate in PEM"),
        (Pair(one.certificate, empty), None, "tls_key", "is no key in PEM"),
        (Pair(one.certificate, locked), None, "tls_key", "has a password"),
        (Pair(one.certificate, two.key), None, "tls_key", "is not the key of"),
        (one, empty, "tls_client_ca", "no certificates of CAs in PEM"),
    ):
        with pytest.raises(ConfigurationError) as refused:
            Certificates.of(using(pair, tls_client_ca=client_ca), knows_clients=True)
        assert [(each.field, said in each.message) for each in refused.value.faults] == [(field, True)], (
            refused.value.faults
        )


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"tls_certificate": "x"}, "tls_key"),
        ({"tls_key": "x"}, "tls_key"),
        ({"tls_client_ca": "x"}, "tls_client_ca"),
        ({"tls_clients": [{"name": "a", "role": "viewer"}]}, "tls_clients"),
        ({"public_url": "jobs.example.com"}, "public_url"),
        ({"public_url": "https://jobs.example.com/clickclock"}, "public_url"),
        ({"public_url": "https://me:hush@jobs.example.com"}, "public_url"),
    ],
)
def test_half_a_setting_is_a_fault(given: dict[str, object], field: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(None, {}, given)
    assert [each.field for each in refused.value.faults] == [field]
    assert "hush" not in str(refused.value.faults)


def test_new_connections_get_the_new_pair_and_one_that_does_not_fit_replaces_nothing(
    authority: Authority, tmp_path: Path
) -> None:
    used, other = Pair(tmp_path / "c.pem", tmp_path / "c.key"), authority.pair("two", days=5)
    used.replace(authority.pair("one"))
    certificates, now = opened(using(used)), SystemClock().now()
    before, (trust, name) = certificates._pair, certificates.peer_trust()
    assert (certificates.peer_trust()[0], name) == (trust, "one")
    used.certificate.write_bytes(other.certificate.read_bytes())
    certificates.look()
    assert certificates._pair is before
    (broken,) = certificates.findings(now)
    assert (broken.code, "is not the key of" in broken.message) == ("certificateUnusable", True)
    used.key.write_bytes(other.key.read_bytes())
    certificates.look()
    assert certificates._pair is not before
    assert [each.code for each in certificates.findings(now)] == ["certificateEnds"]
    assert certificates.peer_trust()[0] is not trust
    assert certificates.peer_trust()[1] == "two"
    used.key.unlink()
    certificates.look()
    assert "cannot be read" in (certificates.trouble or "")


def test_a_key_that_every_user_may_read_is_reported(authority: Authority) -> None:
    pair = authority.pair("one")
    pair.key.chmod(0o640)
    assert key_is_open(using(pair)) is None
    pair.key.chmod(0o644)
    assert "close it: chmod 640" in (key_is_open(using(pair)) or "")
