"""Tunnels: the bytes on the wire, sealed records and the pump."""
