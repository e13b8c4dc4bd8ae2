"""The pulse: one worker's lease, as a machine of `step(event) -> commands`.

It is driven by the heart's own thread and by the simulator. It registers a worker, beats, and
knows by when it must have been answered: the *send* time of the last answered beat, plus the
lease, less a margin. Past that deadline the lease may have lapsed in the store, so the node is
told that it is lost before anybody else can have been given its jobs (clause C7).
"""
