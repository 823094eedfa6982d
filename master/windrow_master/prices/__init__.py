"""The price book: published prices of GPU machines at other providers, each with its source and date."""
