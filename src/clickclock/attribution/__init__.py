"""Attribution: clicks and orders kept as they came, and every order credited to the clicks that earned it."""
