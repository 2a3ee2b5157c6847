"""What both services need and neither owns: time, configuration, errors, ids, loops, the log, records, JSON."""
