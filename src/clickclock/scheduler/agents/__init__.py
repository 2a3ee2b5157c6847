"""Agents: one file for each thing that a replica does again and again.

Each knows the store, the executors and the targets by their doors. No agent imports another: they meet in the rows.
`clickclock.scheduler.engine` runs their loops and says which of them wakes which.
"""
