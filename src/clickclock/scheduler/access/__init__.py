"""Access: tokens of principals and the records of the audit trail.

Never does I/O. Roles and permissions, which both services share, are in `clickclock.foundation`.
"""
