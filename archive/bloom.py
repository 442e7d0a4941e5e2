"""Bloom filters of Parquet files: whether a value can be in a row group, from two small reads.

The format and its numbers: https://github.com/apache/parquet-format/blob/master/BloomFilter.md (split blocks), and
https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md (XXH64, seed 0).
"""

from __future__ import annotations

import struct
from collections.abc import Callable

Read = Callable[[int, int], bytes]  #: (offset in the file, number of bytes) -> these bytes

_HEADER = 32  # bytes read for the header, which takes about 16
_BLOCK = 32
_SALT = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)

# Thrift's compact form of: numBytes, an i32 (varint between the two); then algorithm BLOCK, hash XXHASH, UNCOMPRESSED.
_HEADER_START = b"\x15"
_HEADER_END = b"\x1c\x1c\x00\x00\x1c\x1c\x00\x00\x1c\x1c\x00\x00\x00"

_M64 = 2**64 - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def may_contain(read: Read, offset: int, value: bytes) -> bool:
    """Return false if ``value`` is surely not in the row group whose Bloom filter starts at ``offset``.

    True may be wrong, as often as the filter's rate of false positives says; a filter of another kind gives True.
    """
    header = read(offset, _HEADER)
    size, end = _varint(header, 1)
    if header[:1] != _HEADER_START or header[end : end + len(_HEADER_END)] != _HEADER_END:
        return True
    size >>= 1  # zigzag of a number that is not negative
    start = offset + end + len(_HEADER_END)
    hashed = xxh64(value)
    block = ((hashed >> 32) * (size // _BLOCK)) >> 32
    words = struct.unpack("<8I", read(start + block * _BLOCK, _BLOCK))
    low = hashed & 0xFFFFFFFF
    return all(word >> ((low * salt & 0xFFFFFFFF) >> 27) & 1 for word, salt in zip(words, _SALT, strict=True))


def xxh64(data: bytes) -> int:
    """Return XXH64 of ``data`` with seed 0, the hash that Parquet's Bloom filters are made with."""
    at, size = 0, len(data)
    if size >= 32:
        lanes = [(_P1 + _P2) & _M64, _P2, 0, -_P1 & _M64]
        while at <= size - 32:
            lanes = [_round(lane, word) for lane, word in zip(lanes, struct.unpack_from("<4Q", data, at), strict=True)]
            at += 32
        hashed = sum(_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _M64
        for lane in lanes:
            hashed = ((hashed ^ _round(0, lane)) * _P1 + _P4) & _M64
    else:
        hashed = _P5
    hashed = (hashed + size) & _M64
    while at <= size - 8:
        hashed = (_rotated(hashed ^ _round(0, *struct.unpack_from("<Q", data, at)), 27) * _P1 + _P4) & _M64
        at += 8
    if at <= size - 4:
        hashed = (_rotated(hashed ^ struct.unpack_from("<I", data, at)[0] * _P1 & _M64, 23) * _P2 + _P3) & _M64
        at += 4
    for byte in data[at:]:
        hashed = _rotated(hashed ^ byte * _P5 & _M64, 11) * _P1 & _M64
    hashed = (hashed ^ hashed >> 33) * _P2 & _M64
    hashed = (hashed ^ hashed >> 29) * _P3 & _M64
    return hashed ^ hashed >> 32


def _round(lane: int, word: int) -> int:
    return _rotated(lane + word * _P2 & _M64, 31) * _P1 & _M64


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _M64


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the unsigned varint at ``at`` and where it ends."""
    value = 0
    for shift in range(0, 35, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    return value, at
