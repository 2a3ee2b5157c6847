"""`python -m clickclock.cli`: the command line, where no script is installed.

Never decides anything. Invariant: the same as the command `clickclock`.

>>> from clickclock.cli import main
>>> main.name
'main'
"""

from clickclock.cli import main

if __name__ == "__main__":
    main(prog_name="clickclock")
