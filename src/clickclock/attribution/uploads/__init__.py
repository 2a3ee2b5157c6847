"""Uploads: conversions in the forms that ad networks take.

Never does I/O: `files.export_files` and `files.outbox` keep the files. A new network is one more file here.
"""
