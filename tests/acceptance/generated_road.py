"""What a user writes who has generated Python clients with openapi-generator; run by `test_generated_clients.py`.

Never knows this repository. Invariant: it ends with 0 only if every step did what its name says.

>>> python generated_road.py http://127.0.0.1:8080 http://127.0.0.1:8081 clickclock-data   # doctest: +SKIP
"""

import subprocess
import sys
import time

import attribution_client
import collector_client
import pytest
import scheduler_client


def jobs(url: str) -> None:
    """Create, trigger, list, put back, delete."""
    with scheduler_client.ApiClient(scheduler_client.Configuration(host=url)) as client:
        api = scheduler_client.JobApi(client)
        job = scheduler_client.Job(application="shop", jobName="hello", command="echo hello", preemption=False)
        made = api.post_job(scheduler_client.JobOrSeveral(job))
        assert made.job is not None
        assert made.job.version == 1
        items = [
            scheduler_client.JobItem(application="shop", jobName=name, command="true", preemption=False)
            for name in "ab"
        ]
        several = api.post_job(scheduler_client.JobOrSeveral(items))
        assert several.jobs is not None
        assert [each.job_name for each in several.jobs] == ["a", "b"]

        triggers = scheduler_client.JobTriggerApi(client)
        request = scheduler_client.TriggerRequest(application="shop", jobName="hello")
        trigger = triggers.post_job_trigger(request).trigger
        deadline = time.monotonic() + 30
        while trigger.state not in {"succeeded", "failed"} and time.monotonic() < deadline:
            trigger = triggers.get_job_trigger(trigger_id=trigger.trigger_id).triggers[0]
        assert trigger.state == "succeeded", trigger
        assert "hello" in scheduler_client.JobLogApi(client).get_job_log(trigger_id=trigger.trigger_id)

        listed = api.get_job(application="shop", limit=10).jobs
        assert {each.job_name for each in listed} == {"hello", "a", "b"}
        (stored,) = api.get_job(application="shop", job_name="hello").jobs
        known = {name: value for name, value in stored.to_dict().items() if name in JOB_FIELDS}
        again = api.put_job(scheduler_client.Job.from_dict({**known, "command": "echo again"}), if_match='"1"')
        assert (again.job.command, again.job.version) == ("echo again", 2)
        with pytest.raises(scheduler_client.exceptions.ConflictException) as refused:
            api.post_job(scheduler_client.JobOrSeveral(job))
        assert refused.value.data.code == "jobExists"
        for name in ("hello", "a", "b"):
            assert api.delete_job("shop", name).status == "success"
        assert scheduler_client.HealthApi(client).get_health() == "healthy\n"
        assert scheduler_client.ClusterApi(client).get_cluster().cluster.replicas


JOB_FIELDS = {field.alias or name for name, field in scheduler_client.Job.model_fields.items()}


def clicks(click_url: str) -> None:
    """A click and an order."""
    now_ms = time.time_ns() // 1_000_000
    with collector_client.ApiClient(collector_client.Configuration(host=click_url)) as client:
        api = collector_client.CollectorApi(client)
        api.get_click("shop-1", cli_ubid="u-7", utm_source="newsletter", event_time=now_ms - 60_000)
        order = collector_client.Order(
            client_id="shop-1", order_id="A-1", cli_ubid="u-7", event_time=now_ms, amount="24.90", currency="EUR"
        )
        kept = api.send_orders(collector_client.OrderOrSeveral(order))
        assert [each.result for each in kept.orders] == ["accepted"]
        assert collector_client.HealthApi(client).get_liveness() == "alive\n"


def report(url: str, data_dir: str) -> None:
    """None, while there was no run; then what the run made, and the proof of its order."""
    with attribution_client.ApiClient(attribution_client.Configuration(host=url)) as client:
        api = attribution_client.AttributionApi(client)
        with pytest.raises(attribution_client.exceptions.NotFoundException) as refused:
            api.get_report()
        assert refused.value.data.code == "noVersion"
        program = [sys.executable, "-m", "clickclock.cli"]
        for command in (["compact", "--all"], ["attribution", "run"]):
            subprocess.run([*program, *command, "--data-dir", data_dir], check=True, stdout=sys.stderr)
        (row,) = api.get_report(by="channel", figures="credit").report.rows
        assert (row.channel, row.credit) == ("newsletter", "24.90"), row
        assert [each.orders for each in api.get_versions().versions] == [1]
        proof = api.get_order("shop-1", "A-1").proof
        assert {each.model: each.amount for each in proof.credits}["last"] == "24.90"
        assert proof.clicks[0].fate == "in_journey"


if __name__ == "__main__":
    _, service, collector, folder = sys.argv
    jobs(service)
    clicks(collector)
    report(service, folder)
