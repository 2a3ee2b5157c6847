"""The scheduler: jobs run on time, never lost, never twice."""
