"""How fast journals become the lake, and how small: `python -m tests.bench compaction`.

Clicks of twelve parameters, about 350 bytes: each with a gclid of 32 random bytes and a device id of 122 random bits of
one of four persons in five, from 65,536 networks; campaigns, sellers, models and agents as many as a large account has.
"""

import asyncio
import base64
import os
import random
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq

from clickclock.attribution.clicks.account import Profile
from clickclock.attribution.clicks.entry import connection, encode_plain
from clickclock.attribution.journal import Journal
from tests.bench.report import Goal, Report

PER_MS = 20
BATCH = 512
SLOTS = 2
START_MS = 1_800_000_000_000


def clicks(count: int, seed: int) -> Iterator[bytes]:
    """Entries of plain clicks."""
    chance = random.Random(seed)
    clients = [f"{chance.randrange(16**8):08x}-{number:04x}" for number in range(40)]
    sellers = [str(chance.randrange(10**5, 10**7)) for _ in range(3000)]
    models = [("Samsung", f"SM-G{chance.randrange(900, 999)}B") for _ in range(60)]
    models += [("Xiaomi", f"Redmi Note {number}") for number in range(5, 13)]
    campaigns = [tuple(str(chance.randrange(10**16, 10**17)) for _ in range(3)) for _ in range(400)]
    for number in range(count):
        now_ms = START_MS + number // PER_MS
        person = random.Random(seed << 40 | chance.randrange(count * 4 // 5 + 1))
        device, network, agent = uuid.UUID(int=person.getrandbits(128), version=4), person.getrandbits(16), person
        brand, model = agent.choice(models)
        tag, campaign, content = chance.choice(campaigns)
        gclid = base64.urlsafe_b64encode(b"\x10\x02\x1a\x21\x0a\x10\x8a\x13\x08" + chance.randbytes(32)).decode()
        query = (
            f"client_id={chance.choice(clients)}&seller_id={chance.choice(sellers)}&asvt=v_{chance.randrange(500)}"
            f"&atag=tag-{tag}&gclid={gclid.rstrip('=')}&device_id={device}"
            f"&event_time={now_ms - chance.randrange(20, 9000)}&device_brand={quote(brand)}"
            f"&device_model={quote(model)}&utm_source=google&utm_campaign={campaign}&utm_content={content}"
        )
        browser = f"Chrome/{agent.randrange(100, 131)}.0.0.0 Mobile Safari/537.36"
        system = f"Mozilla/5.0 (Linux; Android {agent.randrange(8, 15)}; {model}) AppleWebKit/537.36 (KHTML)"
        origin = connection(f"{network:016x}", f"{system} {browser}".encode(), b"https://www.google.com/")
        # As version 7 is made here: the time, a counter that starts at random each millisecond, 32 random bits.
        counter = random.Random(now_ms).getrandbits(41) + number % PER_MS
        entry_id = f"{now_ms:012x}7{counter >> 30:03x}8{counter & (2**30 - 1):07x}{chance.getrandbits(32):08x}"
        yield encode_plain(entry_id[:32], now_ms, origin, Profile.STRICT, query.encode())


async def keep(folder: Path, count: int, seed: int) -> int:
    """A journal with so many clicks; returns their bytes."""
    journal = await Journal.open(folder)
    entries, size = clicks(count, seed), 0
    loop = asyncio.get_running_loop()
    while batch := list(islice(entries, BATCH)):
        told = loop.create_future()
        for entry in batch[:-1]:
            journal.append(entry, lambda _: None)
        journal.append(batch[-1], told.set_result)
        size += sum(map(len, batch))
        await told
    await journal.close()
    return size


def run(folder: Path, *, quick: bool) -> Report:
    """Four million clicks (--quick: 500,000), compacted once by the real command as installed, its start included."""
    count = 500_000 if quick else 4_000_000
    report = Report(f"compaction: {count:,} clicks of 12 parameters, in the journals of {SLOTS} collectors")
    size = sum(asyncio.run(keep(folder / "journal" / str(slot), count // SLOTS, slot)) for slot in range(SLOTS))
    command = [sys.executable, "-m", "tests.bench.as_installed", "compact", "--all", "--data-dir", str(folder)]
    begun_s = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    took_s = time.perf_counter() - begun_s
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or f"{count:,} entries" not in told:
        report.faults.append(f"the compaction ended with {process.returncode}: {told}")
        return report
    files = list((folder / "lake" / "clicks").rglob("*.parquet"))
    on_disk = sum(file.stat().st_size for file in files)
    report.add("rate", "clicks/s", count / took_s, Goal(least=500_000))
    report.add("CPU", "µs/click", (usage.ru_utime + usage.ru_stime) / count * 1e6)
    report.add("peak memory of its largest process", "MB", usage.ru_maxrss * 1024 / 1e6, Goal(most=2000))
    report.add("size in the lake", "bytes/click", on_disk / count, Goal(most=80))
    report.notes.append(f"{size / count:.0f} bytes a click in the journal; {len(files)} files in the lake")
    columns = ", ".join(f"{column} {share / count:.1f}" for column, share in _columns(files).most_common(8))
    report.notes.append(f"bytes a click by column: {columns}")
    return report


def _columns(files: list[Path]) -> Counter[str]:
    """Bytes by column, of all files."""
    sizes: Counter[str] = Counter()
    for file in files:
        metadata = pq.read_metadata(file)
        for group in range(metadata.num_row_groups):
            for at in range(metadata.num_columns):
                column = metadata.row_group(group).column(at)
                sizes[column.path_in_schema] += column.total_compressed_size
    return sizes
