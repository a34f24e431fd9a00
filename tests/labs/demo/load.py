# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The load of the demonstration: requests at times that do not depend on the answers.

    python3 load.py ADDRESS RATE TIMEOUT OUTPUT

The arrivals are a Poisson process with a fixed seed: therefore all runs have the same ones. Each
request opens its own connection, and is sent once. Its latency counts from the time at which it was
due, also where the generator sends it later. It runs until SIGTERM, then waits for the answers.

wrk is a closed loop: each of its connections sends a request after the answer to the one before. A
stopped server then gets no requests, and the seconds in which it answers nothing count as one slow
request in place of one for each request that would have come (coordinated omission).
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple, TextIO

SEED = 12


class Answer(NamedTuple):
    """The end of one request.

    Attributes:
        order: its ID.
        due: Unix time at which it was due.
        latency: seconds from that time to the whole answer, or to the failure.
        failure: "" for an answer 200 with the ID.
    """

    order: str
    due: float
    latency: float
    failure: str


def arrivals(rate: float) -> Iterator[float]:
    """Yield the seconds from the begin to each request, for ever."""
    chance, moment = random.Random(SEED), 0.0
    while True:
        moment += chance.expovariate(rate)
        yield moment


async def ask(address: str, order: str, timeout: float) -> str:
    """Send one request; return "" if it was acknowledged, else the failure."""
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection(address, 80)
            try:
                head = f"POST /orders/{order} HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                writer.write(head.encode())
                answer = (await reader.read()).decode(errors="replace")
            finally:
                writer.close()
    except TimeoutError:
        return "no answer in time"
    except OSError as error:
        return f"connection: {error.strerror or error}"
    if not answer:
        return "empty answer"
    status, body = answer.split(" ", 2)[1], answer.rpartition("\r\n\r\n")[2]
    return "" if (status, body) == ("200", order) else f"status {status}"


async def send_all(address: str, rate: float, timeout: float, output: TextIO) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    begin, unix = loop.time(), time.time()
    sent: set[asyncio.Task[None]] = set()

    async def one(order: str, due: float) -> None:
        failure = await ask(address, order, timeout)
        answer = Answer(order, unix + due - begin, loop.time() - due, failure)
        output.write(json.dumps(answer) + "\n")

    for number, seconds in enumerate(arrivals(rate)):
        due = begin + seconds
        while due > loop.time() and not ended.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), due - loop.time())
        if ended.is_set():
            break
        task = asyncio.create_task(one(f"order-{number}", due))
        sent.add(task)
        task.add_done_callback(sent.discard)
    await asyncio.gather(*sent)


def main() -> None:
    address, rate, timeout, output = sys.argv[1:]
    with open(output, "w", encoding="utf-8", buffering=1) as file:
        asyncio.run(send_all(address, float(rate), float(timeout), file))


if __name__ == "__main__":
    main()
