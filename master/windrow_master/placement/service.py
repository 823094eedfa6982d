"""The interface of placement for other packages: deciding, and the record as bytes. It keeps no state."""

from windrow_master.placement.plan import judge, plan
from windrow_master.placement.record import parse_record, record_bytes

__all__ = ["judge", "parse_record", "plan", "record_bytes"]
