"""Files: small files beside the journal and the lake.

Archives that are imported, the outbox of uploads, the docket of an erasure, and the numbers that processes share.
"""
