"""Jobs: the definition of a job, how its command is made and where it runs, and the states of one run (a trigger).

Never does I/O. This is the lowest room of the scheduler: it knows no other. `shell_script` is a part of `command`.
"""
