"""A launch in the process supervisor's words.

Never sends anything. Invariant: a job's own variables go over its secrets, and both over what a user's login sets.
"""

from datetime import timedelta
from typing import Any

from clickclock.scheduler.executors.accounts import Account
from clickclock.scheduler.jobs.launch import Launch


def render(launch: Launch, shift: timedelta, account: Account | None) -> dict[str, Any]:
    """What the supervisor is asked to start; `shift` is how far our clock is ahead of its own."""
    environment = {**launch.secrets, **launch.environment}
    return {
        "name": launch.name,
        "argv": launch.argv,
        "environment": environment if account is None else account.environment | environment,
        "working_directory": launch.working_directory,
        "cpu": launch.cpu,
        "memory_bytes": launch.memory_bytes,
        "timeout_s": launch.timeout_s,
        "grace_s": launch.grace_s,
        "keep_detached": launch.keep_detached,
        "not_before": 0.0 if launch.not_before is None else (launch.not_before - shift).timestamp(),
        **({} if account is None or account.is_own else {"account": account.wire}),
    }
