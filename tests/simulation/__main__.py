"""`python -m tests.simulation --seeds 1-500`: play many dramas; names the seeds that fail, and shows the first."""

import argparse
import asyncio
import logging
import sys
import tempfile

from tests.simulation.drama import play


def main() -> int:
    """Play the dramas; 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", default="1-100", help="a range such as 1-500, or one seed")
    first, _, last = parser.parse_args().seeds.partition("-")
    logging.disable(logging.CRITICAL)
    failed: list[int] = []
    for seed in range(int(first), int(last or first) + 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                asyncio.run(play(seed, f"sqlite:///{folder}/clickclock.db"))
            except AssertionError as error:
                if not failed:
                    sys.stderr.write(f"seed {seed}: {error}\n")
                failed.append(seed)
    sys.stdout.write(f"{int(last or first) - int(first) + 1} seeds, failed: {failed or 'none'}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
