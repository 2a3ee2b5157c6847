"""The process that answers questions: one at a time, from the lake, until nobody can ask any more.

Never listens anywhere, and leaves every core to whoever needs one. Invariants: it ends when its standard input does,
whatever it is doing; standard output has frames (`query_process.py`) and nothing else.

>>> main()   # doctest: +SKIP
"""

import logging
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from queue import SimpleQueue
from threading import Thread
from typing import IO, Any, Final

from clickclock.attribution.api import (
    diff,
    erasures,
    funnel,
    last_clicks,
    order_list,
    order_proof,
    postbacks,
    report,
    uploads,
    versions,
)
from clickclock.attribution.api.query_context import Desk, Reply
from clickclock.attribution.api.query_process import LENGTH_BYTES, PIECE_BYTES, Outcome, framed
from clickclock.attribution.api.remembered import Remembered
from clickclock.foundation.environment import take_environment
from clickclock.foundation.errors import ClickclockError
from clickclock.foundation.seal import close

NICENESS: Final = 10
"""A report takes all cores that are idle, and none that a job or a click needs."""
ANSWERS: Final[Mapping[str, Callable[[Desk, Any], Reply]]] = {
    "report": report.answer,
    "versions": versions.answer,
    "order": order_proof.answer,
    "orders": order_list.answer_orders,
    "paths": order_list.answer_paths,
    "cohorts": order_list.answer_cohorts,
    "diff": diff.answer,
    "clicks": last_clicks.answer,
    "funnel": funnel.answer,
    "uploads": uploads.answer,
    "postbacks": postbacks.answer,
    "erasures": erasures.answer,
}

_log = logging.getLogger(__name__)


def main() -> None:
    """Answer until standard input ends. It begins with the environment, and what opens the desk."""
    close()
    os.nice(NICENESS)
    told = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints must not look like a frame
    asked: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_listen, args=(sys.stdin.buffer, asked), daemon=True).start()
    take_environment(pickle.loads(asked.get()))  # noqa: S301 (from the service, which started us)
    opens: Callable[[], Desk] = pickle.loads(asked.get())  # noqa: S301 (see above)
    desk: Desk | None = None
    remembered = Remembered()
    while True:
        name, question = pickle.loads(asked.get())  # noqa: S301 (see above)
        body = b""
        try:
            desk = desk or opens()
            with desk.docket.explaining():
                reply = remembered.answer(desk, question, ANSWERS[name])
            outcome, body = Outcome(reply.media_type, reply.headers), reply.body
        except ClickclockError as error:
            outcome = Outcome(error=error)
        except Exception:  # noqa: BLE001 (whatever it is, the next question may be answered)
            _log.exception("the question %s could not be answered", name)
            outcome = Outcome()
        for frame in (pickle.dumps(outcome), *_pieces(body), b""):
            told.write(framed(frame))
        told.flush()


def _listen(stream: IO[bytes], asked: "SimpleQueue[bytes]") -> None:
    while len(length := stream.read(LENGTH_BYTES)) == LENGTH_BYTES:
        asked.put(stream.read(int.from_bytes(length)))
    os._exit(0)  # the service is gone, and nobody waits for what is being computed


def _pieces(body: bytes) -> Iterator[bytes]:
    return (body[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES))
