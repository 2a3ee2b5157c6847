"""What a service holds while it runs: its data folder, the lock on it, and its ports.

Never starts anything. Invariants: a lock goes with the process, however it ends; whatever cannot be held is a
`ConfigurationError` that says what to do; nobody but this user and root can have put anything into the data folder.

>>> with sole(Path("clickclock-data"), "lock", "serves"): ...   # doctest: +SKIP
"""

import contextlib
import errno
import fcntl
import logging
import os
import re
import resource
import secrets
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from clickclock.foundation.config import ORDER_TOKENS, Config
from clickclock.foundation.errors import ConfigurationError, Fault

ADDRESS_SALT = "address-salt"
"""The name of the secret without which nobody makes the pseudonym of an address."""
BACKLOG = 4096
RESTORING = "restoring"
"""The mark of a folder in which a backup is being restored: the backup's id. Such a folder is no data folder yet."""
FILES_MIN = 256
"""A quiet service has some 40 open, and a collector keeps 64 for itself; the rest is for those who ask."""
_FOLDERS = ("answers", "exports", "journal", "lake", "logs", "run", "stops", "supervisor")
_EMPTIED = ("answers", "run")
"""Those that are emptied when they are used again."""
_SIGNS = ("lock", "collectors-lock", "lake-lock", "run-lock", "node", "clickclock.db")
"""Files by which a folder is known to be a data folder already: each command that writes makes one of them."""
_NO_LINKS = (*_EMPTIED, *_SIGNS, "audit-lock", "address-salt", "installation", "last-heard", ORDER_TOKENS)
"""What we write or delete by its name. A link in such a place would have it done elsewhere."""
_NOT_FOR_TABLES = re.compile(r"%[0-9A-Fa-f]{2}|[\x00-\x1f\x7f\\]")
"""What delta-rs takes for something else in the path of a table: nothing is found again, or nothing can be made."""

_log = logging.getLogger(__name__)


def make_data_dir(data_dir: Path) -> None:
    """The data folder, for its owner alone. Raises `ConfigurationError` if what we would keep in it cannot be there.

    Somebody's own folder may become one (a volume is never quite empty), unless it has what we would empty.
    """
    _expect_restored(data_dir)
    with writing(data_dir):
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        expect_own(data_dir)
        taken = [name for name in _FOLDERS if os.path.lexists(data_dir / name) and not (data_dir / name).is_dir()]
        is_ours = any((data_dir / name).is_file() for name in _SIGNS)
        theirs = [name for name in _EMPTIED if not is_ours and _has_something(data_dir / name)]
    faults = [Fault("data_dir", f"{data_dir / name} is no folder; move it away, or give another.") for name in taken]
    if theirs:
        sentence = (
            f"{data_dir} is no data folder of clickclock and has {' and '.join(theirs)}, which would be emptied; give "
            "a new folder, or move away what is in the way."
        )
        faults.append(Fault("data_dir", sentence))
    if faults:
        raise ConfigurationError(faults=faults)


def expect_own(data_dir: Path) -> None:
    """Close our data folder to others. Raises `ConfigurationError` for one that others own or may write, or for links.

    The mount point of a volume is root's, and may be open: a container shows it to nobody else.
    """
    found, user = data_dir.stat(), os.geteuid()
    mode, is_volume = stat.S_IMODE(found.st_mode), found.st_uid == 0 and data_dir.is_mount()
    faults = []
    if found.st_uid not in {user, 0}:
        owner = owner_of(data_dir)
        sentence = (
            f"{data_dir} belongs to {owner}, who could change all that is in it; run this as {owner}, or give the "
            "folder to the user that runs this (chown -R), or give another."
        )
        faults.append(sentence)
    if mode & stat.S_IWOTH and (not is_volume or mode & stat.S_ISVTX):
        sentence = (
            f"every user may write to {data_dir} (mode {mode:04o}); look whether all in it is yours, then close it: "
            f"chmod o-rwx {data_dir}."
        )
        faults.append(sentence)
    links = {each.name: each.lstat().st_uid for each in sorted(data_dir.iterdir()) if each.is_symlink()}
    theirs = [name for name, owner in links.items() if owner not in {user, 0}]
    faults += [f"{data_dir / name} is a link that another user made; remove it." for name in theirs]
    faults += [
        f"{data_dir / name} is a link, which is not followed; move what it leads to into its place."
        for name in _NO_LINKS
        if name in links
    ]
    if faults:
        raise ConfigurationError(faults=[Fault("data_dir", sentence) for sentence in faults])
    if mode & stat.S_IRWXO and found.st_uid == user and not is_volume:
        data_dir.chmod(mode & ~stat.S_IRWXO)
        _log.warning("every user could enter %s, which is closed to others now", data_dir)
    elif mode & stat.S_IRWXO and not is_volume:
        _log.warning("every user may enter %s, which has personal data and secrets; chmod o-rwx it", data_dir)


def owner_of(path: Path) -> str:
    """The name of a file's user, or its number if this machine has no name for it."""
    try:
        return path.owner()
    except KeyError:
        return f"the user {path.stat().st_uid}"


def running_as_root(user: int) -> str | None:
    """The consequence for jobs of a service that runs as root; None if `user` is not root."""
    if user != 0:
        return None
    return "The service runs as root, and so does every job that has no `user`."


@contextlib.contextmanager
def private() -> Iterator[None]:
    """Files that are made meanwhile are for this user alone."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def _has_something(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def expect_data_dir(data_dir: Path) -> None:
    """Refuse a data folder that is not there, or not readable: who mistypes it is not to hear that there is no data."""
    try:
        next(data_dir.iterdir(), None)
    except OSError as error:
        sentence = f"{data_dir.absolute()}: {error.strerror}; give the data folder of the service."
        raise ConfigurationError(faults=[Fault("data_dir", sentence)]) from error
    _expect_restored(data_dir)


def _expect_restored(data_dir: Path) -> None:
    """Refuse a folder in which a backup was only begun to be restored."""
    with writing(data_dir):
        mark = data_dir / RESTORING
        backup_id = mark.read_text(encoding="utf-8", errors="replace").strip() if mark.is_file() else None
    if backup_id is not None:
        sentence = (
            f"the backup {backup_id} is not yet restored in {data_dir}; wait for that, or, if it was cut off, run "
            "`clickclock backup restore` again, or delete the folder."
        )
        raise ConfigurationError(faults=[Fault("data_dir", sentence)])


def expect_lake(config: Config) -> None:
    """Refuse a lake that cannot be one: what is in the place of its folder would be read as an empty lake.

    Raises `ConfigurationError`. Where the lake is elsewhere, the data folder need not be there.
    """
    if config.lake_url is None:
        expect_data_dir(config.data_dir)
    expect_place_of_tables(config)
    # A file that may not be looked at is reported by the code that opens it.
    is_there, is_folder = os.path.exists(config.lake), os.path.isdir(config.lake)  # noqa: PTH110, PTH112 (see above)
    if "://" not in config.lake and is_there and not is_folder:
        setting = "data_dir" if config.lake_url is None else "lake_url"
        raise ConfigurationError(faults=[Fault(setting, f"{config.lake} is no folder; move it away, or give another.")])


def expect_place_of_tables(config: Config) -> None:
    """Refuse a folder for the lake in whose path no table can be: every compaction would end with that."""
    folder = config.lake.removeprefix("file://")
    found = None if "://" in folder else _NOT_FOR_TABLES.search(str(Path(folder).absolute()))
    if found is not None:
        setting, sign = ("data_dir" if config.lake_url is None else "lake_url"), found[0]
        sentence = (
            f"the lake cannot be in {Path(folder).absolute()}: no Delta table can have "
            f"{sign if sign.isprintable() else 'a control character'} in its path; give another."
        )
        raise ConfigurationError(faults=[Fault(setting, sentence)])


@contextlib.contextmanager
def writing(data_dir: Path) -> Iterator[None]:
    """Turn what the system says about the folder into a fault of its setting."""
    try:
        yield
    except OSError as error:
        sentence = f"{error.filename or data_dir}: {error.strerror}; give a folder that this user may write."
        raise ConfigurationError(faults=[Fault("data_dir", sentence)]) from error


def kept_secret(data_dir: Path, name: str) -> str:
    """A random text of 64 hex digits in the file `name` of the data folder: made once, for its owner alone.

    Raises `ConfigurationError` if the file has something else: a digest with a known key hides nothing.
    """
    file = data_dir / name
    with writing(data_dir):
        if not file.exists():
            write_secret(file, secrets.token_hex(32))
        kept = file.read_bytes().strip()
    if not re.fullmatch(rb"[0-9a-f]{64}", kept):
        sentence = f"{file} is not the 64 hex digits that were made; bring it back, or remove it and another is made."
        raise ConfigurationError(faults=[Fault("data_dir", sentence)])
    return kept.decode()


def write_secret(file: Path, secret: str) -> None:
    """Put a secret into a file for its owner alone, in place of what was there. Raises `OSError`."""
    fresh = file.with_suffix(".new")
    fresh.touch(mode=0o600)
    with fresh.open("w") as made:
        made.write(secret + "\n")
        made.flush()
        os.fsync(made.fileno())
    fresh.rename(file)


@contextlib.contextmanager
def sole(data_dir: Path, name: str, does: str, *, waits: bool = False) -> Iterator[None]:
    """Be the only one that `does` something with the data folder: hold the lock `name` in it, or wait for it."""
    with contextlib.ExitStack() as opened:
        with writing(data_dir):
            file = opened.enter_context((data_dir / name).open("a"))
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        except BlockingIOError as error:
            sentence = f"Another clickclock {does} {data_dir}; stop it, or give this one another --data-dir."
            raise ConfigurationError(faults=[Fault("data_dir", sentence)]) from error
        yield


def expect_files(config: Config) -> None:
    """Let this process open as many files as it needs, if the system allows it. Raises `ConfigurationError` if not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= FILES_MIN:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES_MIN, hard))
    except (ValueError, OSError) as error:
        wanted = FILES_MIN + config.click_connections_max
        sentence = (
            f"this process may open only {hard} files, connections among them; {FILES_MIN} are needed, and {wanted:,} "
            "for all that click_connections_max allows. Raise the limit (`ulimit -n`, LimitNOFILE of systemd)."
        )
        raise ConfigurationError(faults=[Fault("ulimit -n", sentence)]) from error


@contextlib.contextmanager
def listening(host: str, port: int, setting: str, count: int = 1) -> Iterator[list[socket.socket]]:
    """Listening sockets on one port, over which the kernel spreads the connections; `setting` names the port's."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.ExitStack() as opened:
        sockets: list[socket.socket] = []
        try:
            # Sockets that share a port also share it with another clickclock of this user, which would get some of
            # the connections. One that does not share finds out.
            first = opened.enter_context(socket.create_server((host, port), family=family, backlog=BACKLOG))
            if count == 1:
                sockets.append(first)
            else:
                port = first.getsockname()[1]
                first.close()
                for _ in range(count):
                    each = socket.create_server((host, port), family=family, backlog=BACKLOG, reuse_port=True)
                    sockets.append(opened.enter_context(each))
        except OSError as error:
            # Python adds the address to the system's words. A name that is not found has no number above 0.
            why = str(error.strerror).partition(" (while attempting")[0]
            is_found = error.errno is not None and error.errno > 0 and error.errno != errno.EADDRNOTAVAIL
            wrong = setting if is_found else setting.replace("port", "host")
            sentence = f"{host}:{port} cannot be listened on: {why}; give another --{wrong.replace('_', '-')}."
            raise ConfigurationError(faults=[Fault(wrong, sentence)]) from error
        yield sockets


def url_of(listener: socket.socket, scheme: str = "http") -> str:
    """Where a listening socket is reached from this machine."""
    host, port = listener.getsockname()[:2]
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
