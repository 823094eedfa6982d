"""The whole market in virtual time: shipped shells on a seeded loop, network, disk and database."""
