"""What a user writes who has generated clients with openapi-python-client; run by `test_generated_clients.py`.

Never knows this repository. Invariant: it ends with 0 only if every step did what its name says.

>>> python generated_attrs_road.py http://127.0.0.1:8080   # doctest: +SKIP
"""

import sys

import attribution_client.models
from attribution_client.api.attribution import get_report
from collector_client.api.collector import send_orders
from scheduler_client import Client, models
from scheduler_client.api.health import get_liveness
from scheduler_client.api.job import delete_job, get_job, post_job, put_job
from scheduler_client.api.job_trigger import post_job_trigger


def main(url: str) -> None:
    """Create, trigger, list, put back, delete; read a report."""
    client = Client(base_url=url)
    job = models.Job(application="attrs", job_name="hello", command="echo hello", preemption=False)
    made = post_job.sync(client=client, body=job)
    assert isinstance(made, models.JobOrSeveralAnswer)
    several = [models.JobItem(application="attrs", job_name=name, command="true", preemption=False) for name in "ab"]
    assert len(post_job.sync(client=client, body=several).jobs) == 2
    request = models.TriggerRequest(application="attrs", job_name="hello")
    assert post_job_trigger.sync(client=client, body=request).trigger.job_name == "hello"
    listed = get_job.sync(client=client, application="attrs", job_name="hello")
    (stored,) = listed.jobs
    taken = {
        name: value for name, value in stored.to_dict().items() if name not in ("version", "createdAt", "updatedAt")
    }
    again = put_job.sync(client=client, body=models.Job.from_dict({**taken, "command": "echo again"}))
    assert again.job.command == "echo again"
    refused = post_job.sync(client=client, body=job)
    assert (type(refused), refused.code) == (models.ErrorBody, "jobExists")
    for name in ("a", "b"):
        assert isinstance(delete_job.sync(client=client, application="attrs", job_name=name), models.SuccessAnswer)
    assert get_liveness.sync(client=client) == "alive\n"
    report = get_report.sync(client=client)
    assert isinstance(report, (attribution_client.models.GetReportAnswer, attribution_client.models.Error)), report
    assert send_orders.sync is not None


if __name__ == "__main__":
    main(sys.argv[1])
