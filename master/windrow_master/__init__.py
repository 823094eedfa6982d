"""The Master: the control plane, one package per capability. Only the Master decides."""
