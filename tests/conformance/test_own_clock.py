from tidemill.conformance.own_clock import *  # noqa: F403 - pytest collects the kit's facts from here
