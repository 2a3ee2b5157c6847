"""Uploads: conversions in the forms that ad networks take.

Never does I/O: `files` keeps what is written, and `networks.py` sends it. `…_upload` makes files. `…_request` makes
requests of them and reads the answers.
"""
