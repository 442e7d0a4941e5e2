"""The demonstration: a made-up season, played and closed on embedded servers in a folder of its own."""
