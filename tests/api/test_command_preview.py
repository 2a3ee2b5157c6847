"""What a command becomes for a nominal time, over HTTP: nothing is run, and every fault is named."""

from typing import Any

import httpx
import pytest

from tests.api.conftest import JOB, SCHEDULE

DAY = "{{ nominalTime | subtract(days=1) | date('%Y-%m-%d') }}"
NIGHT = "2026-03-29T22:30:00Z"
"""Half past midnight in Berlin, after the day of 23 hours."""


async def previewed(http: httpx.AsyncClient, **asked: Any) -> dict[str, Any]:
    response = await http.post("commandPreview", json=asked)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()["commandPreview"]
    return found


async def refused(http: httpx.AsyncClient, **asked: Any) -> list[tuple[str, str]]:
    response = await http.post("commandPreview", json=asked)
    assert response.status_code == 422, response.text
    return [(each["field"], each["message"]) for each in response.json()["errors"]]


async def test_a_job_is_previewed_with_the_zone_and_the_times_of_its_schedule(http: httpx.AsyncClient) -> None:
    command = f"echo {DAY} {{{{ previousNominalTime }}}} {{{{ nextNominalTime }}}} {{{{ parameters.who }}}}"
    job = {**JOB, "command": command, "parameters": {"who": "me"}, "workingDirectory": f"/data/{DAY}",
           "environment": {"DAY": DAY, "OTHER": "{{ row.day }}"}}  # fmt: skip
    assert (await http.post("job", json=job)).status_code == 201
    fields = {"expression": "30 0 * * *", "timeZone": "Europe/Berlin"}
    assert (await http.post("schedules", json={**SCHEDULE, **fields})).status_code == 201
    asked = {"application": "shop", "jobName": "export", "nominalTime": NIGHT, "parameters": {"who": "a b"}}
    found = await previewed(http, **asked)
    assert found["argv"] == ["echo", "2026-03-29", "2026-03-28T23:30:00.000Z", "2026-03-30T22:30:00.000Z", "a b"]
    assert (found["timeZone"], found["workingDirectory"]) == ("Europe/Berlin", "/data/2026-03-29")
    assert (found["environment"]["DAY"], found["environment"]["OTHER"]) == ("2026-03-29", "{{ row.day }}")
    assert found["environment"]["CLICKCLOCK_NOMINAL_TIME"] == "2026-03-29T22:30:00.000Z"
    tried = await previewed(http, **(asked | {"command": "echo {{ zone }}", "shell": True}))
    assert tried["argv"] == ["/bin/sh", "-c", 'echo "${CLICKCLOCK_TEMPLATE_1}"']
    assert tried["environment"]["CLICKCLOCK_TEMPLATE_1"] == "Europe/Berlin"
    assert (await http.get("jobTrigger?application=shop&jobName=export")).json()["triggers"] == []


async def test_a_command_alone_is_previewed_in_any_zone(http: httpx.AsyncClient) -> None:
    found = await previewed(http, command=f"echo {DAY}", timeZone="Europe/Berlin", nominalTime=NIGHT)
    assert found["argv"] == ["echo", "2026-03-29"]
    assert (await previewed(http, command=f"echo {DAY}", nominalTime=NIGHT))["argv"] == ["echo", "2026-03-28"]


async def test_a_preview_that_cannot_be_made_names_every_fault(http: httpx.AsyncClient, job: None) -> None:
    told = await refused(
        http,
        application="shop",
        jobName="export",
        command="echo {{ nominalTime | dat('%F') }} {{ tomorrow }} | x",
        environment={"A": "{{ nominaltime }}", "B": "{{ attempt | date('%F') }}"},
    )
    assert [field for field, _ in told] == ["command", "environment.A", "environment.B"]
    assert "There is an unquoted |" in told[0][1]
    assert "there is no filter dat: did you mean date" in told[0][1]
    assert "There is no template {{ tomorrow }}" in told[0][1]
    (fault,) = await refused(http, application="shop", jobName="export", command="echo {{ previousNominalTime }}")
    assert fault[0] == "command"
    assert fault[1].startswith("The template {{ previousNominalTime }} has no value: the job has no schedule; give one")


@pytest.mark.parametrize(
    ("asked", "fields"),
    [
        ({}, ["command"]),
        ({"jobName": "export"}, ["jobName"]),
        ({"command": "true", "timeZone": "Mars", "scheduleId": "s"}, ["scheduleId", "timeZone"]),
        ({"application": "shop", "jobName": "export", "timeZone": "UTC"}, ["timeZone"]),
        ({"application": "shop", "jobName": "export", "parameters": {"x": "y"}}, ["parameters.x"]),
    ],
)
async def test_a_preview_of_nothing_or_of_two_things_is_refused(
    http: httpx.AsyncClient, job: None, asked: dict[str, Any], fields: list[str]
) -> None:
    assert [field for field, _ in await refused(http, **asked)] == fields


async def test_a_preview_of_what_is_not_there_is_404(http: httpx.AsyncClient, job: None) -> None:
    for asked in ({"jobName": "other"}, {"jobName": "export", "scheduleId": "none"}):
        response = await http.post("commandPreview", json={"application": "shop", **asked})
        assert response.status_code == 404


async def test_a_job_with_a_faulty_template_is_refused_in_every_place(http: httpx.AsyncClient) -> None:
    bad = "{{ nominalTime | add(day=1) }}"
    response = await http.post(
        "job", json={**JOB, "command": f"echo {bad}", "environment": {"A": bad}, "workingDirectory": f"/{bad}"}
    )
    assert response.status_code == 422
    told = response.json()["errors"]
    assert [each["field"] for each in told] == ["command", "environment.A", "workingDirectory"]
    assert all("add cannot take day: did you mean days" in each["message"] for each in told)
