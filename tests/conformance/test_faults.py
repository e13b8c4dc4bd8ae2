from tidemill.conformance.faults import *  # noqa: F403 - pytest collects the kit's facts from here
