"""Totals against standings, every player: what nobody is paid without."""
