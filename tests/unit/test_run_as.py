"""Which user a job runs as: who is allowed, and that nobody becomes root by accident."""

from datetime import UTC, datetime

import pytest

from clickclock.scheduler.executors.container.options import ContainerOptions
from clickclock.scheduler.executors.container.request import creation
from clickclock.scheduler.executors.kubernetes.manifest import impossible, job_of
from clickclock.scheduler.executors.kubernetes.options import KubernetesOptions
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.launch import Launch
from clickclock.scheduler.jobs.run_as import refusal

NAME = "01993f2e-7b1c-7cc0-8000-5f0c6c1d9a11-1"


@pytest.mark.parametrize(
    ("user", "allowed", "is_allowed"),
    [
        ("shop", (), False),
        ("shop", ("shop",), True),
        ("shop", ("shops", "SHOP"), False),
        ("1000", ("*",), True),
        ("shop", ("*",), True),
        ("shop:docker", ("*",), False),
        ("shop:docker", ("shop",), False),
        ("shop:docker", ("*", "shop:docker"), True),
        *((user, ("*",), False) for user in ("root", "0", "00", "0:0", "shop:root", "1000:0")),
        ("root", ("*", "root"), True),
        ("0", ("root",), False),
    ],
)
def test_who_is_listed_is_allowed_and_a_star_means_no_root(
    user: str, allowed: tuple[str, ...], is_allowed: bool
) -> None:
    assert (refusal(user, allowed) is None) is is_allowed


def test_the_refusal_says_who_is_allowed_and_where() -> None:
    assert refusal("shop", ("reports",)) == "Jobs may not run as 'shop' here; allowed are reports."
    assert refusal("shop", ()) == "Jobs may not run as 'shop' here; job_users allows none."


@pytest.mark.parametrize("user", ["", ":", "a b", "-x", "a:", ":a", "a:b:c", "$(id)", "a\n", "ä", "a/b"])
def test_what_cannot_be_a_user_is_refused(user: str) -> None:
    with pytest.raises(ValueError, match="user"):
        Job(application="a", job_name="j", command="true", user=user)


def test_a_container_gets_the_jobs_user_over_the_clusters() -> None:
    options = ContainerOptions(user="nobody")
    for user, expected in ((None, "nobody"), ("1000:1000", "1000:1000"), ("shop", "shop")):
        launch = Launch(NAME, ("true",), image="x", user=user)
        assert creation(launch, options, cluster="c", owner="o")["User"] == expected


def test_a_pod_gets_numbers_over_its_template_and_no_names() -> None:
    context = {"runAsUser": 5, "readOnlyRootFilesystem": True}
    options = KubernetesOptions(pod_template={"spec": {"containers": [{"name": "main", "securityContext": context}]}})
    launch = Launch(NAME, ("true",), image="x", user="1000:2000")
    made = job_of(launch, options, owner="o", now=datetime(2026, 11, 20, tzinfo=UTC))
    (container,) = made["spec"]["template"]["spec"]["containers"]
    assert container["securityContext"] == {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsUser": 1000,
        "runAsGroup": 2000,
        "runAsNonRoot": True,
    }
    assert "by number alone" in (impossible(Launch(NAME, ("true",), image="x", user="shop")) or "")
