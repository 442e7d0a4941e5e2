"""PostgreSQL: match results, totals, seasons, leases, the journal, seals and grants. The source of truth."""
