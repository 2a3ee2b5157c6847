"""Erasing: whom an erasure names, what becomes of uploads to networks, and the receipt.

Never does I/O: the eraser does the work, and `files.docket` remembers an erasure that is not finished.
"""
