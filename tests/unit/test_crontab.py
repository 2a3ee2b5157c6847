"""Crontabs: what their lines mean is what cron would do; what cannot be is told with its line."""

from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from clickclock.files import Unreadable, read_crontab
from clickclock.files.cron_line import expression_fault, needs_shell
from clickclock.files.job_name import job_name
from clickclock.foundation.errors import Fault
from clickclock.scheduler.jobs.command import parse
from clickclock.scheduler.times.schedule import Schedule

NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)
TIMES = 4


def jobs(text: str, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_crontab(text, "c", application="a", **options).declaration["jobs"]
    return found


def notes(text: str, **options: Any) -> list[str]:
    return read_crontab(text, "c", application="a", **options).notes


def faults(text: str, **options: Any) -> list[str]:
    with pytest.raises(Unreadable) as caught:
        jobs(text, **options)
    return [fault.field for fault in caught.value.faults]


def _field(low: int, high: int, *names: str) -> st.SearchStrategy[str]:
    numbers = st.integers(low, high)
    ranges = st.tuples(numbers, numbers).map(sorted)
    # Of a range of one value with a step, CronSim steps on to the end, and cron does not: that has a test of its own.
    longer = ranges.filter(lambda pair: pair[0] < pair[1])
    part = st.one_of(
        st.just("*"),
        numbers.map(str),
        ranges.map(lambda pair: f"{pair[0]}-{pair[1]}"),
        st.integers(1, 99).map(lambda step: f"*/{step}"),
        st.tuples(longer, st.integers(1, 99)).map(lambda both: f"{both[0][0]}-{both[0][1]}/{both[1]}"),
        *([st.sampled_from(names)] if names else []),
    )
    return st.lists(part, min_size=1, max_size=3).map(",".join)


LINES = st.tuples(
    _field(0, 59),
    _field(0, 23),
    _field(1, 28),
    _field(1, 12, "jan", "Feb", "DEC"),
    _field(0, 7, "sun", "Mon", "SAT"),
).map(" ".join)


@settings(deadline=None)
@given(LINES)
def test_an_imported_line_is_due_when_debians_cron_would_run_it(line: str) -> None:
    (job,) = jobs(f"{line} true\n")
    schedule = Schedule(application="a", job_name="j", expression=job["schedules"][0]["expression"])
    times, at = [], NOW
    table = schedule.timetable(NOW)
    for _ in range(TIMES):
        found = table.after(at)
        assert found is not None
        at = found.at
        times.append(at)
    assert times == list(islice(CronSim(line, NOW), TIMES))


@pytest.mark.parametrize("line", ["0 0 13 * 5", "0 0 */2 * 1", "0 0 1-7 * 7", "0 0 * * 0", "0 12 1 JAN *"])
def test_day_of_month_or_day_of_week_as_in_debians_cron(line: str) -> None:
    schedule = Schedule(application="a", job_name="j", expression=jobs(f"{line} true")[0]["schedules"][0]["expression"])
    found = schedule.timetable(NOW).after(NOW)
    assert found is not None
    assert found.at == next(CronSim(line, NOW))


@pytest.mark.parametrize(
    "expression",
    [
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "5-1 * * * *",
        "*/0 * * * *",
        "5/15 * * * *",
        "1,,2 * * * *",
        "* * L * *",
        "* * * foo *",
        "*-5 * * * *",
        "-1 * * * *",
        "@fortnightly",
        f"{'1' * 5000} * * * *",
        f"*/{'1' * 5000} * * * *",
    ],
)
def test_what_cron_refuses_is_refused_with_a_sentence(expression: str) -> None:
    sentence = expression_fault(expression)
    assert sentence is not None
    assert sentence.endswith(".")


def test_every_line_that_cron_would_refuse_is_told_with_its_number_and_nothing_else_is_done() -> None:
    text = "61 * * * * a\n0 0 * * * fine\n* * * *\n\n# comment\njust words\n@never x\n"
    assert faults(text) == ["c:1", "c:3", "c:6", "c:7"]


def test_a_system_crontab_needs_a_user() -> None:
    assert faults("* * * * * root\n", system=True) == ["c:1"]
    (job,) = jobs("* * * * * www-data true\n", system=True)
    assert job["labels"] == {"cronUser": "www-data"}
    assert "not as www-data" in notes("* * * * * www-data true\n", system=True)[0]


def test_a_crontab_that_looks_like_a_system_one_is_told_of() -> None:
    assert any("--system" in each for each in notes("17 * * * * root run-parts /etc/cron.hourly\n"))
    assert notes("17 * * * * root run-parts\n18 * * * * report\n") == []


def test_variables_hold_for_the_lines_below_them() -> None:
    text = "* * * * * first\nSTAGE = production\n QUOTED=' a b '\n* * * * * second\nSTAGE=\"x y\"\n* * * * * third\n"
    first, second, third = jobs(text)
    assert "environment" not in first
    assert second["environment"] == {"STAGE": "production", "QUOTED": " a b "}
    assert third["environment"] == {"STAGE": "x y", "QUOTED": " a b "}


def test_mailto_is_kept_as_a_label_and_said_once() -> None:
    text = "MAILTO=ops@example.com\n* * * * * a\n* * * * * b\nMAILTO=\n* * * * * c\n"
    assert [job.get("labels") for job in jobs(text)] == [{"mailto": "ops@example.com"}] * 2 + [None]
    assert len(notes(text)) == 1
    assert "notifications" in notes(text)[0]


def test_cron_tz_moves_the_times_and_tz_does_not() -> None:
    text = "0 0 * * * a\nCRON_TZ=Asia/Tokyo\nTZ=Europe/Paris\n0 0 * * * b\n"
    first, second = jobs(text, time_zone="Europe/Berlin")
    assert first["schedules"] == [{"expression": "0 0 * * *", "timeZone": "Europe/Berlin"}]
    assert second["schedules"] == [{"expression": "0 0 * * *", "timeZone": "Asia/Tokyo"}]
    assert second["environment"] == {"TZ": "Europe/Paris"}
    assert notes(text)[0].startswith("c:3: TZ")


def test_an_empty_cron_tz_is_the_machines_zone_again() -> None:
    text = "CRON_TZ=Asia/Tokyo\n0 0 * * * a\nCRON_TZ=\n0 0 * * * b\n"
    assert jobs(text, time_zone="Europe/Berlin")[1]["schedules"][0]["timeZone"] == "Europe/Berlin"
    assert "timeZone" not in jobs(text)[1]["schedules"][0]


def test_a_zone_that_is_none_or_not_known_is_refused() -> None:
    assert faults("CRON_TZ=Mars/Phobos\n0 0 * * * a\n") == ["c:1"]
    assert faults("0 0 * * * a\nCRON_TZ=Asia/Tokyo\n0 0 * * * b\nCRON_TZ=\n@daily c\n", time_zone="") == ["c:1", "c:5"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("*/90 * * * *", "*/60 * * * *"),
        ("0 */36 * * *", "0 */24 * * *"),
        ("0 0 */32 * FRI", "0 0 */31 * FRI"),
        ("0 0 1 */13 *", "0 0 1 */12 *"),
        ("0 0 * * */8", "0 0 * * */7"),
        ("5,10-20/30 * * jan-MAR/9 *", "5,10-20/11 * * jan-MAR/3 *"),
    ],
)
def test_a_step_longer_than_its_field_is_kept_as_cron_runs_it_with_a_note(expression: str, expected: str) -> None:
    (job,) = jobs(f"{expression} true\n")
    assert job["schedules"] == [{"expression": expected}]
    assert notes(f"{expression} true\n")[0].startswith("c:1: The step of the ")
    Schedule(application="a", job_name="j", expression=expected).timetable(NOW)


def test_what_runs_at_boot_is_left_out_and_said() -> None:
    text = "@reboot start\n@daily run\n"
    assert [job["jobName"] for job in jobs(text)] == ["run"]
    assert notes(text)[0].startswith("c:1: @reboot is left out")


def test_a_percent_sign_begins_standard_input() -> None:
    (job,) = jobs(r"0 0 * * * date +\%F; cat%one%two")
    assert job["command"] == "printf %s 'one\ntwo\n' | /bin/sh -c 'date +%F; cat'"
    assert job["shell"] is True


def test_another_shell_is_started_by_name() -> None:
    (job,) = jobs("SHELL=/bin/bash\n0 0 * * * [[ -e x ]] && y\n")
    assert job["command"] == "/bin/bash -c '[[ -e x ]] && y'"
    assert "shell" not in job


def test_what_reads_standard_input_runs_in_the_other_shell_too() -> None:
    (job,) = jobs("SHELL=/bin/bash\n0 4 * * * read -a words && echo ${words[0]}%one two\n")
    shell, flag, script = parse(job["command"], shell=False).words
    assert (shell, flag) == ("/bin/bash", "-c")
    assert script.startswith("printf %s 'one two\n' | /bin/bash -c ")


def test_home_is_also_where_commands_run() -> None:
    (job,) = jobs("HOME=/srv/shop\n0 0 * * * ./run\n")
    assert (job["workingDirectory"], job["environment"]) == ("/srv/shop", {"HOME": "/srv/shop"})


@pytest.mark.parametrize("command", ["./run", "cd shop && ./run", "nice ../bin/run", "cd . ; x"])
def test_a_command_that_counts_on_the_home_folder_is_told_of_where_the_crontab_names_none(command: str) -> None:
    (note,) = notes(f"0 0 * * * {command}\n")
    assert note.startswith("c:1: ")
    assert "HOME=" in note
    assert notes(f"HOME=/srv/shop\n0 0 * * * {command}\n") == []
    assert notes("0 0 * * * cd /srv && run --in=x ~/y\n") == []


def test_braces_that_are_no_template_reach_the_command_as_they_are() -> None:
    (job,) = jobs("0 0 * * * docker ps --format '{{.Names}}'\n")
    assert job["environment"] == {"CRON_COMMAND": "docker ps --format '{{.Names}}'"}
    parse(job["command"], shell=job["shell"])


def test_a_comment_above_a_line_describes_it() -> None:
    text = "# About cron.\n\n# Makes the report.\n# Slow.\n0 0 * * * report\n0 1 * * * other\n"
    assert [job.get("description") for job in jobs(text)] == ["Makes the report. Slow.", None]


def test_neither_the_template_of_crontab_e_nor_a_line_out_of_use_describes_a_job() -> None:
    template = "# Edit this file.\n# \n# For more see cron(8)\n# \n# m h  dom mon dow   command\n"
    out_of_use = "# the old one\n#0 5 * * 1 /usr/bin/old.sh\n#@reboot /usr/bin/boot.sh\n"
    first, second = jobs(f"{template}0 5 * * 1 first.sh\n{out_of_use}0 6 * * 1 second.sh\n")
    assert "description" not in first
    assert "description" not in second


def test_a_command_in_several_lines_is_one_job_with_several_schedules() -> None:
    text = "0 0 * * * report\n0,30 12 * * 1 report\n0 0 * * * report\n@daily report\n"
    (job,) = jobs(text)
    assert [each.get("scheduleName") for each in job["schedules"]] == [None, "0.30 12 x x 1", "daily"]
    Schedule.model_validate({"application": "a", "jobName": "j", **job["schedules"][1]})


def test_names_are_unique_and_do_not_change_when_lines_are_added() -> None:
    text = "0 0 * * * /opt/backup --all\n0 1 * * * /opt/backup --most\n"
    before = [job["jobName"] for job in jobs(text)]
    assert before[0] == "backup"
    assert len(set(before)) == 2
    assert [job["jobName"] for job in jobs(text + "0 2 * * * /opt/backup --some\n")][:2] == before


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/usr/local/bin/backup --all", "backup"),
        ("cd /srv/shop && ./bin/run.sh", "run"),
        ('"/opt/my app/run.sh"', "run"),
        ("'/opt/my app/nightly run.py' --all >/dev/null 2>&1", "nightly-run"),
        ("/opt/my\\ app/run.sh", "run"),
        ('nice python3 "/opt/my app/report.py"', "report"),
        ("python3 -u /srv/etl.py load", "etl"),
        ("python -m etl.load", "etl.load"),
        ("/usr/bin/flock -n /run/lock nice -n 10 /opt/sync", "sync"),
        ("STAGE=production timeout 60s /opt/sync", "sync"),
        ("test -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.daily )", "cron.daily"),
        ("[ -d /var ] && tidy", "tidy"),
        (":", "job"),
        ("", "job"),
        ("/opt/ünïcode", "n-code"),
        ("cd /x && bundle exec rake y", "rake-y"),
        ("chronic bundle exec rake db:backup", "rake-db-backup"),
        ("/bin/sh -lc 'cd /srv && ./run.sh --x'", "run"),
        ('bash -c "python3 /a/b/c.py"', "c"),
        ("su - deploy -c '/opt/app/bin/report --daily'", "report"),
        ('su deploy -c "cd /x; php artisan schedule:run"', "artisan-schedule-run"),
        ("runuser -u deploy -- /opt/report", "report"),
        ("sudo -H -u www-data -- bash -c 'cd /y && ./z.sh'", "z"),
        ("source /etc/profile; /opt/x/run", "run"),
        (". ~/.env && RAILS_ENV=production node app.js", "app"),
        ("timeout 30 bash -lc 'source env.sh && make -C /x all'", "make-all"),
        ("export A=1; set -e; ./go", "go"),
        ("(cd /x && ./go.sh) > /dev/null", "go"),
        ("if [ -x /a ]; then /opt/tidy; fi", "tidy"),
        ("docker compose exec -T web python manage.py sync", "manage-sync"),
        ("poetry run python -m etl.load", "etl.load"),
        ("npm run nightly", "npm-nightly"),
        ("java -Xmx1g -jar /opt/app/report.jar", "report"),
        ("flock -n /run/lock -c '/opt/sync'", "sync"),
        ("ssh -p 22 host '/opt/backup.sh'", "backup"),
        ("php bin/console app:sync --env=prod", "console-app-sync"),
    ],
)
def test_a_job_is_called_after_its_program(command: str, name: str) -> None:
    assert job_name(command) == name


@pytest.mark.parametrize(
    "script", ["a | b", "a > b", "A=1 b", "cd /srv", "echo $HOME", "ls *", "echo 'a'", "a;b", "~/x"]
)
def test_what_a_shell_makes_more_of_needs_one(script: str) -> None:
    assert needs_shell(script)


@pytest.mark.parametrize("script", ["/opt/backup --all", "python -m etl load --day=2026-11-20", "curl http://a/b,c"])
def test_what_is_only_words_needs_no_shell(script: str) -> None:
    assert not needs_shell(script)


def test_a_fault_that_the_service_finds_is_told_with_its_line() -> None:
    crontab = read_crontab("\n0 0 * * * a\n0 0 30 2 * b\n1 1 30 2 * b\n", "c", application="a")
    assert crontab.located(Fault("[0].jobs[1].schedules[1].expression", "Never.")) == Fault("c:4", "Never.")
    assert crontab.located(Fault("[0].jobs[0].command", "No.")) == Fault("c:2", "No.")
    assert crontab.located(Fault("set", "No.")) == Fault("set", "No.")
