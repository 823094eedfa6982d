"""The queue: who comes next, who may have how much, what starts beside a reservation, when the rest starts.

model     what waits, and what it needs          shares    the tree of shares: usage, guarantees, ceilings
order     who comes next, and who not yet        quota     what a project may have at once, else why not
backfill  one look at the queue: reservations    estimate  when it starts, how sure that is, and why not yet
service   the loop of the leading Master         ports     who puts entries and starts them; who reads the fleet
"""
