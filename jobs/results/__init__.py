"""Match results into the ledger, out of it as files, and out of it for good."""
