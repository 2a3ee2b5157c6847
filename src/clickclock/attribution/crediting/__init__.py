"""Crediting: the definition of credit, one person at a time: policy, touchpoints, journeys and channels.

Never does I/O; `attribution/models` has the models. The room `columns` computes the same for millions of people at
once, in numpy. A property test holds both equal.
"""
