"""Live boards: written from the ledger, made anew, cut anew, and read."""
