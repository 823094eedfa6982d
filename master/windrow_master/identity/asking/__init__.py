"""Who is asking: tokens, sessions of browsers, and when they were last used."""
