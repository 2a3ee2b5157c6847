"""Attribution's own jobs: what they run, and that the scheduler takes them as any user's."""

import logging
import shlex
import sys
from pathlib import Path

import pytest

from clickclock.app.own_jobs import APPLICATION, OPERATIONS, ensure_own_jobs, out_of_reach, own_jobs
from clickclock.foundation.config import Config
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.times.schedule import Schedule


def command(config: Config, file: Path | None = None) -> list[str]:
    """What the compaction runs."""
    job, _ = own_jobs(config, file)[0]
    return shlex.split(job["command"])


def test_each_work_is_a_job_with_a_schedule_of_its_own() -> None:
    made = own_jobs(Config(), None)
    assert [job["jobName"] for job, _ in made] == ["compaction", "run", "exports", "retention"]
    assert [schedule["scheduleId"] for _, schedule in made] == [f"attribution.{job['jobName']}" for job, _ in made]


def test_networks_and_partners_have_jobs_where_they_are_configured() -> None:
    postback = {"name": "affiliate", "url": "https://p.example/"}
    send = {"meta": {"dataset_id": "7", "token_file": "t"}}
    made = own_jobs(Config.model_validate({"postback": [postback], "send": [send]}), None)
    names = [job["jobName"] for job, _ in made]
    assert names == ["compaction", "run", "exports", "sending", "postbacks", "retention"]
    assert shlex.split(made[4][0]["command"])[3:6] == ["attribution", "postbacks", "send"]
    assert "postbacks" not in [job["jobName"] for job, _ in own_jobs(Config(), None)]


def test_the_compaction_names_this_program_and_its_data_folder_in_full() -> None:
    words = command(Config(data_dir=Path("some where/it's")))
    folder = str(Path.cwd() / "some where/it's")
    assert words == [sys.executable, "-m", "clickclock.cli", "compact", "--all", "--data-dir", folder]


def test_it_reads_the_same_configuration_and_writes_the_same_lake() -> None:
    words = command(Config(data_dir=Path("/d"), lake_url="s3://clicks"), Path("c.toml"))
    options = dict(zip(words[5::2], words[6::2], strict=True))
    assert options == {"--data-dir": "/d", "--config": str(Path.cwd() / "c.toml"), "--lake-url": "s3://clicks"}


def test_a_lake_in_a_folder_is_named_in_full() -> None:
    """A job begins in another folder than the service, and would write another lake."""
    assert command(Config(data_dir=Path("/d"), lake_url="clicks"))[-1] == str(Path.cwd() / "clicks")
    assert command(Config(data_dir=Path("/d"), lake_url="file:///clicks"))[-1] == "file:///clicks"


def test_no_secret_is_in_a_job() -> None:
    config = Config.model_validate({"lake_url": "s3://clicks", "lake_options": {"AWS_SECRET_ACCESS_KEY": "hush"}})
    assert "hush" not in str(own_jobs(config, None))


def test_a_backup_is_made_each_night_where_it_is_said_where_to_and_without_clicks() -> None:
    given = {
        "clicks": False,
        "backup_url": "backups",
        "backup_key_file": "key",
        "database_url": "postgresql://u:hush@h/d",
    }
    ((job, schedule),) = own_jobs(Config.model_validate(given), None)
    words = shlex.split(job["command"])
    assert words[3:6] == ["backup", "create", "--verify"]
    assert words[-4:] == ["--backup-url", str(Path.cwd() / "backups"), "--key-file", str(Path.cwd() / "key")]
    assert "hush" not in str(job)
    assert schedule["scheduleId"] == "clickclock.backup"
    (fault,) = out_of_reach(Config.model_validate(given), {"CLICKCLOCK_DATABASE_URL": "postgresql://u:hush@h/d"})
    assert fault.field == "database_url"


def test_the_scheduler_takes_them_as_they_are() -> None:
    partner = {"name": "affiliate", "url": "https://p.example/"}
    config = Config.model_validate({"backup_url": "s3://backups", "postback": [partner]})
    for job, schedule in own_jobs(config, None):
        made, planned = Job.model_validate(job), Schedule.model_validate(schedule)
        assert (made.application, made.job_name) == (planned.application, planned.job_name)
        assert made.application in {APPLICATION, OPERATIONS}
        assert made.max_concurrent_triggers == 1


def test_a_scheduler_that_does_not_answer_is_logged_stops_nothing_and_is_asked_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR):
        assert not ensure_own_jobs("http://127.0.0.1:1", "", Config(), None)
    assert "could not be set up" in caplog.text
