"""The holdshort executable: one file a command group."""
