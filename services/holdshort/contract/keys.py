"""Where a thread lives: Kafka's default partitioner (murmur2 of the key), which every writer must use."""

from functools import lru_cache

_MASK = 0xFFFFFFFF
_M = 0x5BD1E995


_LONGEST_KEPT = 512


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a key among `partitions`, as Kafka's clients compute it."""
    return _kept(key, partitions) if len(key) <= _LONGEST_KEPT else _computed(key, partitions)


def _computed(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


_kept = lru_cache(maxsize=65536)(_computed)  # of short keys alone, or hostile ones would fill the memory


def murmur2(data: bytes) -> int:
    """The 32-bit murmur2 hash with the seed that Kafka uses."""
    h = (0x9747B28C ^ len(data)) & _MASK
    whole = len(data) & ~3
    for i in range(0, whole, 4):
        k = (int.from_bytes(data[i : i + 4], "little") * _M) & _MASK
        k = ((k ^ (k >> 24)) * _M) & _MASK
        h = ((h * _M) & _MASK) ^ k
    if tail := data[whole:]:
        h = ((h ^ int.from_bytes(tail, "little")) * _M) & _MASK
    h = ((h ^ (h >> 13)) * _M) & _MASK
    return h ^ (h >> 15)
