"""Redis against the ledger: compared, explained, kept as a report, put right."""
