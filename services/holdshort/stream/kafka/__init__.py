"""The ports on aiokafka. The only package that imports it, and the place of every trap in it.

Read in aiokafka 0.14 and seen on a real broker (decision 0004 has the list):

- a commit succeeds although a batch of it failed: every future is awaited before the commit;
- after any error sequence numbers and state are wrong: a producer that has met one is discarded;
- EndTxn is sent again after a lost answer, and the first one may still be under way: a producer whose
  transaction met a transport error is not used again, even if it was committed in the end;
- neither commit nor stop has a time limit: the caller sets one, and `discard` cancels and closes by force;
- markers move a position only within getmany: restores compare positions, not the offsets of records;
- getmany must not be cancelled, and a consumer that is told nothing resumes from group offsets, which a
  loading coordinator reports as none: offsets are always sought, and `auto_offset_reset` is none.
"""

from holdshort.stream.kafka.cluster import AioKafka

__all__ = ("AioKafka",)
