from tidemill.conformance.claim import *  # noqa: F403 - pytest collects the kit's facts from here
