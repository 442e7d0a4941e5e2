"""The command line and the runner: where settings, ledger, live boards, archive and rewards are wired together."""
