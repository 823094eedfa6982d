"""Sends mail by SMTP: what is to be sent is written down with what it tells of, and sent until it is delivered."""
