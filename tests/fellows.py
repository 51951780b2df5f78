"""Ranks as threads of one process: what a rank does can be tested without starting processes."""

import threading
from contextlib import ExitStack
from unittest.mock import patch

import torch

SECONDS = 30
PLACE = "ppo_lessons.gpu_run.ranks"


class Fellows:
    """Threads that play ranks; the messages of `gpu_run.ranks` go between them."""

    def __init__(self, size):
        self.size = size
        self.barrier = threading.Barrier(size, timeout=SECONDS)
        self.own = threading.local()
        self.posted = [None] * size
        self.results, self.errors = [None] * size, []

    def gathered(self, numbers):
        self.posted[self.own.rank] = numbers.detach().clone()
        self.barrier.wait()
        everyone = torch.stack(self.posted)
        self.barrier.wait()  # nobody posts the next before all have read this one
        return everyone

    def summed(self, numbers):
        return numbers.copy_(self.gathered(numbers).sum(dim=0))

    def run(self, program, rank):
        self.own.rank = rank
        try:
            self.results[rank] = program(rank)
        except BaseException as error:
            self.errors.append(error)
            self.barrier.abort()


def together(program, size=2):
    """Run `program(rank)` on each rank at once; give what each returned."""
    fellows = Fellows(size)
    fakes = {
        "world_size": lambda: size,
        "summed": fellows.summed,
        "gathered": fellows.gathered,
    }
    with ExitStack() as stack:
        for name, fake in fakes.items():
            stack.enter_context(patch(f"{PLACE}.{name}", fake))
        threads = [
            threading.Thread(target=fellows.run, args=(program, rank)) for rank in range(size)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    # a rank that waits in vain is no cause but a consequence
    errors = sorted(fellows.errors, key=lambda e: isinstance(e, threading.BrokenBarrierError))
    if errors:
        raise errors[0]
    return fellows.results
