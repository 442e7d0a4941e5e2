"""Property tests here are bounded by their number of examples, not by the clock, and draw the same ones each time."""

from hypothesis import settings

settings.register_profile("domain", deadline=None, derandomize=True, database=None, max_examples=150)
settings.load_profile("domain")
