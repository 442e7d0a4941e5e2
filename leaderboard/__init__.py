"""The domain of leaderboards and seasons: pure values and rules, no I/O."""
