"""Many threads that begin at once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier


def together(number, part):
    """Run `part(n)` in `number` threads that start at one barrier; answer what each answered."""
    barrier = Barrier(number)

    def run(n):
        barrier.wait()
        return part(n)

    with ThreadPoolExecutor(number) as threads:
        return list(threads.map(run, range(number)))
