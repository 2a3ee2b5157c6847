"""Policies from a configuration: the table of campaigns that it names, in the forms in which people keep one."""

from pathlib import Path

import pytest

from clickclock.app.accounts import policies_of
from clickclock.app.checking import check
from clickclock.foundation.config import Config, load
from clickclock.foundation.errors import ConfigurationError


def config_with(file: Path) -> Config:
    given = {"client_id": "shop-1", "attribution": {"campaign_names_file": file}}
    other = {"client_id": "shop-2", "channel_rules": [{"channel": "TV", "parameter": "source"}]}
    both = {"data_dir": file.parent / "data", "attribution": {"campaign_names_file": file}}
    return load(None, {}, {**both, "accounts": [{**given, "channel_rules": other["channel_rules"]}, other]})


@pytest.mark.parametrize(
    "content",
    [
        "channel,campaign,name\nFacebook,7,Frühling\ntv,8,Spot\n".encode(),
        "Name;Channel;Campaign\nFrühling;Facebook;7\nSpot;tv;8\n".encode("windows-1252"),
        '{"channel": "fb", "campaign": "7", "name": "Frühling"}\n{"channel": "TV", "campaign": 8, "name": "Spot"}\n'.encode(),  # noqa: E501 (a file as it is)
    ],
)
def test_a_table_is_read_as_people_keep_it(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "campaigns.csv"
    file.write_bytes(content)
    policies = policies_of(config_with(file))
    assert policies.find("shop-1").campaign_names == {"meta": {"7": "Frühling"}, "TV": {"8": "Spot"}}
    assert policies.find("shop-2").campaign_names == {"meta": {"7": "Frühling"}, "TV": {"8": "Spot"}}
    assert policies.find("anybody").campaign_names == {"meta": {"7": "Frühling"}, "tv": {"8": "Spot"}}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("channel,campaign,name\ngoogle,,x\ngoogle,1,\n", ["line 2 of", "line 3 of"]),
        ("channel,id,title\ngoogle,1,x\n", ["has no column campaign and no column name; it has channel, id, title."]),
        ("", ["is empty."]),
        (None, ["cannot be read: No such file or directory."]),
    ],
)
def test_what_is_wrong_with_a_table_is_named_before_anything_starts(
    tmp_path: Path, content: str | None, told: list[str]
) -> None:
    file = tmp_path / "campaigns.csv"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigurationError) as refused:
        check(config_with(file))
    assert {each.field for each in refused.value.faults} == {"campaign_names_file"}
    for sentence, each in zip(told, refused.value.faults, strict=True):
        assert sentence in each.message
