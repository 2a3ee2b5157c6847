"""What people are shown of the settings: all of them, and no secret."""

import json

from pydantic import SecretStr

from clickclock.foundation.config import Config, load
from clickclock.foundation.shown_settings import shown

HUSH = "hush-hush"
SECRETS = {
    "database_url": f"postgresql://me:{HUSH}@db/jobs",
    "smtp_password": HUSH,
    "lake_options": {"AWS_SECRET_ACCESS_KEY": HUSH},
    "lake_url": f"s3://bucket/lake?token={HUSH}",
    "clusters": {"far": {"executor": "kubernetes", "token": HUSH}},
    "notifications": {"ops": {"url": f"https://chat.example/{HUSH}", "secret_file": f"/run/{HUSH}"}},
    "accounts": [{"client_id": "shop-1", "orders_token_sha256": "0" * 64}],
}


def test_every_setting_is_shown_and_none_of_the_secrets() -> None:
    told = shown(load(None, {}, SECRETS))
    assert [each.name for each in told] == [*Config.model_fields]
    assert not [each.name for each in told if HUSH in json.dumps(each.model_dump(mode="json"))]
    values = {each.name: each.value for each in told}
    assert (values["smtp_password"], values["database_url"]) == ("set", "postgresql://me:**********@db/jobs")
    assert (values["lake_options"], values["clusters"]) == (["AWS_SECRET_ACCESS_KEY"], ["far"])
    assert (values["notifications"], values["accounts"]) == (["ops"], ["shop-1"])


def test_what_is_its_default_says_so() -> None:
    told = {each.name: each for each in shown(Config(port=9000, smtp_password=SecretStr(HUSH)))}
    assert (told["port"].value, told["port"].default, told["port"].is_default) == (9000, 8080, False)
    assert (told["host"].is_default, told["smtp_password"].is_default) == (True, False)
