"""finale doctor: everything a season relies on, looked at before it is needed."""
