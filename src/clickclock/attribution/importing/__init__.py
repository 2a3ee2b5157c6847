"""Importing: rows of tables and lines of servers' logs as the clicks, orders and costs that they stand for.

Never does I/O: `files.archive` reads the files. The same row of the same file always has the same id.
"""
