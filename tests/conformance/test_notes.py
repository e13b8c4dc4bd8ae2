from tidemill.conformance.notes import *  # noqa: F403 - pytest collects the kit's facts from here
