"""How a Master is asked for the certificate of its own authority. Imports nothing that is slow to import."""

import ssl
from typing import Final

OWN_AUTHORITY: Final = "Windrow root"
OWN_NAME: Final = "master.windrow"
"""What each Master's own certificate is for, beside its addresses. Who trusts its own authority alone asks by this
name: under its public name it may show a certificate from elsewhere."""


def is_own(trust: ssl.SSLContext) -> bool:
    """True if nobody but a Master's own authority is trusted."""
    subjects = [found["subject"] for found in trust.get_ca_certs()]
    return bool(subjects) and all(subject == ((("commonName", OWN_AUTHORITY),),) for subject in subjects)
