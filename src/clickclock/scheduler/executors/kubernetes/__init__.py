"""The Kubernetes member of the executors' door.

Never loaded unless a cluster of that kind is configured. Invariant: `KubernetesExecutor` is all that others see.

>>> KubernetesExecutor.capabilities.wants_image
True
"""

from clickclock.scheduler.executors.kubernetes.executor import KubernetesExecutor

__all__ = ["KubernetesExecutor"]
