"""What a season pays: previewed, granted, delivered, corrected, explained and audited."""
