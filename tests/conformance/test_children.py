from tidemill.conformance.children import *  # noqa: F403 - pytest collects the kit's facts from here
