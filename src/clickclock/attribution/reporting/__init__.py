"""Reporting: result versions, and the reports, lists, proofs and differences that are read from them.

Never does I/O: the agents read the lake. `parameters` reads the parameters of a question.
"""
