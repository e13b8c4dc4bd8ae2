"""The installed package carries its types."""

from typing import assert_type

import tidemill

assert_type(tidemill.__name__, str)
