"""One challenge of one host, over a channel."""
