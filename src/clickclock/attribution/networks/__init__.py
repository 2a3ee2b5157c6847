"""Networks: the servers that are told of conversions, ad networks and partners, one request at a time.

Never retries and never follows a redirect: agents decide what is sent again.
"""
