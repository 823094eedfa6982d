"""The interface of placement for other packages: deciding, deciding again, and the record as bytes. It keeps no
state."""

from windrow_master.placement.plan import plan, replay
from windrow_master.placement.record import parse_record, record_bytes

__all__ = ["parse_record", "plan", "record_bytes", "replay"]
