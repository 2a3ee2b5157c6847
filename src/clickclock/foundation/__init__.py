"""What both services need and neither owns: clock, config, errors, ids, lifecycle, log, problem, record."""
