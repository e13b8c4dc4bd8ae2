from tidemill.conformance.identity_and_time import *  # noqa: F403 - pytest collects the kit's facts from here
