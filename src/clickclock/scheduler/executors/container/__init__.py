"""Attempts as containers of a Docker or Podman engine, one container for each.

It never runs a command on this host and never asks a registry itself. Invariants: a container's name follows from its
attempt's, so that starting twice runs once; an exit is reported when the output is on disk, and the container is
removed only when the exit is recorded for good.

>>> ContainerExecutor.capabilities.wants_image
True
"""

from clickclock.scheduler.executors.container.executor import ContainerExecutor

__all__ = ["ContainerExecutor"]
