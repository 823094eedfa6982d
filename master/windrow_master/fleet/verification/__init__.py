"""Whether a host has the GPUs that it says: what is asked, what is believed, and why."""
