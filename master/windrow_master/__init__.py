"""The Master: the control plane, one package per capability. Only the Master decides."""

__version__ = "0.1.0"
