"""The storage contract: what any store must guarantee, cut by topic.

An operation is a value (`Enqueue(...)`, `Exchange(...)`), and a store is something that performs
operations. So the shell, the simulator, the heart's own thread and a user's own transaction all
speak the same requests, and none of them needs a second spelling for synchronous callers.
"""
