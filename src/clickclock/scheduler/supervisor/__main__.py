"""The supervisor's first lines: find this package without site packages, then hand over to `daemon.main`.

Never run by a person. Invariant: exit status 0 means that a supervisor now listens in the folder, this or another.
`python -I -S …/supervisor/__main__.py DATA_FOLDER/supervisor`
"""

import sys

if __name__ == "__main__":
    sys.path.insert(0, __file__.rsplit("/", 4)[0])
    from clickclock.scheduler.supervisor.daemon import main

    main(sys.argv[1])
