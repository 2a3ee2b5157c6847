"""The process that answers questions, from the service's side: started when there is one, replaced when it dies.

What reads the lake takes whole cores for seconds, and the service's loop must not wait for a millisecond. So one
process of its own answers, one question at a time. Never reads the lake itself. Invariants: at most `WAITING_MAX`
questions wait; each waits for at most `LIMIT_S`, and is answered within `LIMIT_S`, or refused; the process ends with
the service, however that ends, because its standard input does, and when nobody has asked for `IDLE_S`.

Both ways, what is said is frames: its length in `LENGTH_BYTES`, and then so many bytes. An answer is an `Outcome`, the
body in pieces, and an empty frame.

>>> asker = Asker(partial(open_desk, config), stopping)   # doctest: +SKIP
>>> await asker.ask("report", Asked())   # doctest: +SKIP
"""

import asyncio
import contextlib
import logging
import pickle
import sys
from collections.abc import Callable
from typing import Any, Final

import msgspec

from clickclock.foundation.environment import environment, environment_to_start
from clickclock.foundation.errors import ClickclockError, Transient

WAITING_MAX: Final = 8
"""Questions beyond this would wait for minutes; they are refused at once."""
LIMIT_S: Final = 60.0
IDLE_S: Final = 300.0
"""Then its memory is given back; the next question waits a second for a new process."""
PIECE_BYTES: Final = 2**16
"""The loop is held for no longer than it takes to move so much."""
LENGTH_BYTES: Final = 8
_PROGRAM: Final = "from clickclock.attribution.api.query_worker import main; main()"

_log = logging.getLogger(__name__)


class TooManyQuestions(Transient):
    """As many questions wait for an answer as may; ask again in a moment."""

    code = "tooManyQuestions"


class QuestionTooLong(Transient):
    """The answer took too long and was given up; ask for fewer days or figures, or use the command line."""

    code = "questionTooLong"


class AnswererEnded(Transient):
    """The process that answers questions ended, and is started anew; ask again."""

    code = "answererEnded"


class Outcome(msgspec.Struct, frozen=True):
    """What became of a question: an answer's media type and headers, or an error to be raised. None of it: a fault."""

    media_type: str = ""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    error: ClickclockError | None = None


class Answer(msgspec.Struct, frozen=True):
    """An answer, whole."""

    outcome: Outcome
    pieces: list[bytes]


class Asker:
    """Asks one process, one question after the other."""

    def __init__(self, opens: Callable[[], Any], stopping: asyncio.Event, *, limit_s: float = LIMIT_S) -> None:
        """`opens` is called in the process and gives what answers are made from; it must be picklable."""
        self._opens = pickle.dumps(opens)
        self._stopping = stopping
        self._limit_s = limit_s
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._process: asyncio.subprocess.Process | None = None
        self._keeping: set[asyncio.Task[None]] = set()
        self._idle: asyncio.TimerHandle | None = None

    async def ask(self, name: str, question: Any) -> Answer:
        """The answer. Raises what the question deserves, and errors of this file.

        A question whose asker is cancelled is given up.
        """
        if self._waiting >= WAITING_MAX:
            raise TooManyQuestions
        self._waiting += 1
        try:
            await self._wait()
            try:
                answer = await self._answered(pickle.dumps((name, question)))
            finally:
                self._turn.release()
        finally:
            self._waiting -= 1
        outcome = answer.outcome
        if outcome.error is not None:
            raise outcome.error
        if not outcome.media_type:
            raise ClickclockError("The process that answers questions has logged why it could not.")
        return answer

    async def _wait(self) -> None:
        """For its turn. Raises `TooManyQuestions`."""
        try:
            async with asyncio.timeout(self._limit_s):
                await self._turn.acquire()
        except TimeoutError:
            raise TooManyQuestions(f"This question waited {self._limit_s:g} s for others; ask again later.") from None

    async def _answered(self, question: bytes) -> Answer:
        if self._idle is not None:
            self._idle.cancel()
        try:
            async with asyncio.timeout(self._limit_s):
                answer = await _exchange(self._process or await self._start(), question)
        except TimeoutError:
            self._end()
            raise QuestionTooLong from None
        except (OSError, EOFError) as error:
            self._end()
            if not self._stopping.is_set():
                _log.error("the process that answers questions ended and is started again: %r", error)
            raise AnswererEnded from error
        except asyncio.CancelledError:
            self._end()  # it would go on with what nobody waits for
            raise
        self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._end)
        return answer

    async def _start(self) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-c", _PROGRAM),  # what lies in the service's folder is not imported
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            # Ctrl-C reaches every process of the terminal's group; this one ends when the service does.
            start_new_session=True,
            env=environment_to_start(),
        )
        self._process = process
        keeping = asyncio.create_task(self._keep(process))
        self._keeping.add(keeping)
        keeping.add_done_callback(self._keeping.discard)
        assert process.stdin is not None
        process.stdin.write(framed(pickle.dumps(environment())) + framed(self._opens))
        return process

    async def _keep(self, process: asyncio.subprocess.Process) -> None:
        """Until it ends, or the service stops."""
        exited, stopping = asyncio.create_task(process.wait()), asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([exited, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if self._process is process:
                self._end()
        await exited

    def _end(self) -> None:
        """At once: it holds nothing that would be lost."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()


def framed(content: bytes) -> bytes:
    """Content as a frame."""
    return len(content).to_bytes(LENGTH_BYTES) + content


async def _exchange(process: asyncio.subprocess.Process, question: bytes) -> Answer:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(framed(question))
    await process.stdin.drain()
    outcome = pickle.loads(await _frame(process.stdout))  # noqa: S301 (from our own process)
    pieces = []
    while piece := await _frame(process.stdout):
        pieces.append(piece)
    return Answer(outcome, pieces)


async def _frame(stream: asyncio.StreamReader) -> bytes:
    return await stream.readexactly(int.from_bytes(await stream.readexactly(LENGTH_BYTES)))
