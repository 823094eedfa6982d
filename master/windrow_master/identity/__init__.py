"""Identity and permissions: accounts, tokens, the certificate authority, and the standing of every host and Access."""
