"""The imperative part around the node: the loop, sockets, clocks, handlers and threads.

It carries out what the core decides and tells it what happened. It should be too dumb to have
interesting faults. Nothing below this layer imports asyncio.
"""
