"""Networks: the servers of ad networks and partners, called one request at a time.

Never retries and never follows a redirect: agents decide what is sent again.
"""
