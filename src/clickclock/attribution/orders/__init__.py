"""Orders: their fields, their amounts as exact money, and the amendments that change one later.

Never does I/O and never uses a float. `appsflyer` reads the orders that AppsFlyer's callbacks bring.
"""
