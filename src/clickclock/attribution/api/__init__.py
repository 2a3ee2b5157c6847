"""Attribution over HTTP: the collector's port (`server`), and the questions on the service's own port (`application`).

Never loads the one for the other: a collector starts fast, and knows nothing of reports.
Invariant: both ports describe themselves by what they check requests with.
"""
