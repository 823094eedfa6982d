"""What an Access decides: who may connect, whose frames go next, what is shed. Pure."""
