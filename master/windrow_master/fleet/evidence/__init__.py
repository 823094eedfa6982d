"""What hosts prove: taken in once, in the transaction that marks it as had."""
