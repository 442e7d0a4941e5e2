"""The commands of ``finale``, one file a group."""
