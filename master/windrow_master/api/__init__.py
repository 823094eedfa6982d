"""The Master's HTTP API: its routes, live streams, and the files of the console."""
