"""The market: offers and prices, what running time costs, the ledger, receipts."""
