"""The connection of a host to its Master, through an Access: dialling, sending, sending again, tunnels, bandwidth."""
