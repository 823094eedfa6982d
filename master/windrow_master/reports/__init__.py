"""Reports: sums of money, hours and incidents by two dimensions, statements, and reports that are sent by mail."""
