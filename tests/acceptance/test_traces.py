"""Traces, as whoever has a collector sees them: from the caller's span to the process and to what it cost."""

from pathlib import Path
from typing import Any

import httpx

from clickclock.client import Client
from tests.acceptance.service import running
from tests.trace_receiver import receiving

OPEN = ("--clicks", "--click-port", "0", "--click-profile", "open")
TRACE, UNKEPT = "4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c"
SPAN = "00f067aa0ba902b7"


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def test_a_run_is_one_trace_from_whoever_asked_to_the_end_of_its_process(tmp_path: Path) -> None:
    config = tmp_path / "clickclock.toml"
    (tmp_path / "headers").write_text("x-team: shop\n\nAuthorization: Bearer of-the-receiver\n")
    with receiving() as receiver:
        config.write_text(f'traces_url = "{receiver.url}"\ntraces_headers_file = "{tmp_path / "headers"}"\n')
        with running(tmp_path / "data", "--config", str(config)) as service, Client(service.url) as client:
            job = {"application": "t", "jobName": "traced", "shell": True, "maxRetries": 1}
            client.create_job({**job, "command": 'echo "$TRACEPARENT $TRACESTATE"; exit 3'})
            asked = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "vendor=1"}
            body = {"application": "t", "jobName": "traced"}
            answer = httpx.post(f"{service.url}/schedulerService/jobTrigger", json=body, headers=asked)
            trigger_id = answer.json()["trigger"]["triggerId"]
            run = receiver.named("run t/traced", TRACE)
            request = receiver.named("POST /schedulerService/jobTrigger", TRACE)
            tries = [receiver.named(f"attempt {number}", TRACE) for number in (1, 2)]
            assert [each.parent_span_id.hex() for each in (request, run)] == [SPAN, request.span_id.hex()]
            assert {each.parent_span_id for each in tries} == {run.span_id}
            told = attributes(run)
            assert (told["clickclock.trigger.id"], told["clickclock.trigger.state"]) == (trigger_id, "failed")
            assert [attributes(each)["process.exit.code"] for each in tries] == [3, 3]
            assert [each.status.code for each in (request, run)] == [0, 2]
            (shown,) = client.triggers(triggerId=trigger_id)
            assert shown["traceparent"] == f"00-{TRACE}-{request.span_id.hex()}-01"
            said = b"".join(client.log(trigger_id, attempt=2)).decode()
            assert said == f"00-{TRACE}-{tries[1].span_id.hex()}-01 vendor=1\n"
            unkept = {"traceparent": f"00-{UNKEPT}-{SPAN}-00"}
            httpx.post(f"{service.url}/schedulerService/jobTrigger", json=body, headers=unkept).raise_for_status()
            client.create_job({**job, "jobName": "each second", "command": "true"})
            client.create_schedule({**body, "jobName": "each second", "kind": "interval", "expression": "PT1S"})
            scheduled = receiver.named("run t/each second")
            assert attributes(scheduled)["clickclock.trigger.id"].replace("-", "") == scheduled.trace_id.hex()
            assert service.stop() == 0
        assert {each["x-team"] for each in receiver.headers} == {"shop"}
        assert {each["authorization"] for each in receiver.headers} == {"Bearer of-the-receiver"}
        traces = [each.trace_id.hex() for each in receiver.spans]
        assert (traces.count(TRACE), traces.count(UNKEPT)) == (4, 0)


def test_a_click_and_an_order_are_traces_until_they_are_on_disk_and_their_ids_name_them(tmp_path: Path) -> None:
    config = tmp_path / "clickclock.toml"
    with receiving() as receiver:
        config.write_text(f'traces_url = "{receiver.url}"\n')
        with running(tmp_path / "data", "--config", str(config), *OPEN) as service:
            said = {"client_id": "c", "cli_ubid": "u", "event_time": "1790000000000"}
            assert httpx.get(f"{service.click_url}/aclick", params=said).status_code == 204
            kept = receiver.named("keep click")
            order = {"client_id": "c", "order_id": "7", "cli_ubid": "u", "amount": "1.00", "currency": "EUR"}
            answer = httpx.post(f"{service.click_url}/orders", json={**order, "event_time": 1790000000000}).json()
            its = receiver.named("keep order", answer["orders"][0]["id"])
            for span in (kept, its):
                assert 0 <= span.end_time_unix_nano - span.start_time_unix_nano < 10_000_000_000
                assert attributes(span)["clickclock.entries"] == 1
                assert (span.status.code, span.parent_span_id) == (0, b"")
            assert service.stop() == 0
