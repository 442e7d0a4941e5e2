"""Seasons that run themselves: the daemon and its ticks, and what they tell."""
