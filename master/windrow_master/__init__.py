"""The Master: the control plane, one room per capability. Only the Master decides."""

__version__ = "0.1.0"
