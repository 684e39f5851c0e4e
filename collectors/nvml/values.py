"""What the answers to field values mean: words of 64 bits, each with a type and a code, as numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from twin.frames import UNKNOWN_U64

F64 = npt.NDArray[np.float64]
U64 = npt.NDArray[np.uint64]
Entries = npt.NDArray[np.void]
Places = npt.NDArray[np.intp]

# nvmlFieldValue_t: 40 bytes. type: nvmlValueType_t, code: nvmlReturn_t of this entry alone
ENTRY = np.dtype(
    [
        ("field", "<u4"), ("scope", "<u4"), ("time", "<i8"), ("latency", "<i8"), ("type", "<u4"), ("code", "<u4"),
        ("value", "<u8"),
    ]
)  # fmt: skip
WORDS, TAG, VALUE = 5, 3, 4  # of an entry as 64-bit words; the tag is type and code

DOUBLE, UINT, ULONG, ULONGLONG, LONGLONG, INT, USHORT = range(7)
_OTHER = 7  # a type of a later driver: what its bytes mean is not known
_LOW = np.uint64(0xFFFF_FFFF)
_SENTINEL = np.uint64(0x7FFF_FFFF_FFFF_FFF0)  # from here up the vendor's tools mean "not supported" (DCGM)
_SENTINEL_FLOAT = 140737488355328.0
# by type: the bits that count, and the number from which on a value is none; 0 for types that are read apart
_MASK = np.array([2**64 - 1, 2**32 - 1, *[2**64 - 1] * 3, 2**32 - 1, 2**16 - 1, 0], np.uint64)
_BELOW = np.array([0, 2**32 - 1, _SENTINEL, _SENTINEL, 0, 0, 2**16, 0], np.uint64)


class Decoder:
    """From words to numbers. What types and codes mean for them is worked out once, and again when any changed.

    scale: float64[n], what the values are multiplied with. n_floats: so many of the first are wanted as float64, the
    rest as uint64, and their scales are whole numbers.
    """

    def __init__(self, scale: F64, n_floats: int) -> None:
        self._n = n_floats
        self._scale, self._factor = scale[:n_floats], scale[n_floats:].astype(np.uint64)
        self._fits = UNKNOWN_U64 // self._factor  # a product of what is less fits into 64 bits
        self._learnt: bytes | None = None

    def read(self, tags: U64, raw: U64) -> tuple[F64, U64]:
        """float64[n_floats], NaN where unknown; uint64[rest], all ones where unknown or no natural number.

        tags: uint64[n], a type in the lower half of each, a code in the upper; raw: uint64[n]; both as in an entry.
        """
        if (seen := tags.tobytes()) != self._learnt:
            self._learn(tags)
            self._learnt = seen
        n = self._n
        whole = raw & self._mask
        known = whole < self._below
        floats: F64 = np.where(known[:n], whole[:n] * self._scale, np.nan)
        wholes: U64 = np.where(known[n:], whole[n:] * self._factor, UNKNOWN_U64)
        if self._odd.size:
            self._read_odd(raw, floats, wholes)
        return floats, wholes

    def _learn(self, tags: U64) -> None:
        kind = np.minimum(tags & _LOW, np.uint64(_OTHER)).astype(np.intp)
        good = tags >> np.uint64(32) == 0
        self._mask = _MASK[kind]
        self._below = np.where(good, _BELOW[kind], np.uint64(0))
        self._below[self._n :] = np.minimum(self._below[self._n :], self._fits)
        self._odd = np.flatnonzero(good & ((kind == DOUBLE) | (kind == LONGLONG) | (kind == INT)))
        self._odd_kind = kind[self._odd]

    def _read_odd(self, raw: U64, floats: F64, wholes: U64) -> None:
        odd, kind = self._odd, self._odd_kind
        cut = int(np.searchsorted(odd, self._n))
        at = odd[:cut]
        floats[at] = _odd_floats(kind[:cut], raw[at]) * self._scale[at]
        numbers, at = _odd_wholes(kind[cut:], raw[odd[cut:]]), odd[cut:] - self._n
        wholes[at] = np.where(numbers < self._fits[at], numbers * self._factor[at], UNKNOWN_U64)


def decode(entries: Entries) -> tuple[F64, U64]:
    """float64[n] (NaN where unknown) and uint64[n] (all ones where unknown or no natural number)."""
    words = np.tile(entries.view(np.uint64).reshape(-1, WORDS), (2, 1))
    return Decoder(np.ones(len(words)), len(entries)).read(words[:, TAG], words[:, VALUE])


def _odd_floats(kind: Places, raw: U64) -> F64:
    """Of doubles and signed numbers."""
    double = raw.view(np.float64)
    signed = np.where(kind == INT, (raw & _LOW).astype(np.uint32).view(np.int32), raw.view(np.int64))
    known = (kind == INT) | (raw < _SENTINEL) | (raw >= np.uint64(1 << 63))
    with np.errstate(invalid="ignore"):  # any bytes may be a double, a signalling NaN too
        known_double = np.abs(double) < _SENTINEL_FLOAT  # NaN and infinity are not
    return np.where(kind == DOUBLE, np.where(known_double, double, np.nan), np.where(known, signed, np.nan))


def _odd_wholes(kind: Places, raw: U64) -> U64:
    values = _odd_floats(kind, raw)
    natural = (values >= 0) & (values == np.floor(values))
    as_whole = np.where(natural & (kind == DOUBLE), values, 0).astype(np.uint64)
    whole = np.where(kind == DOUBLE, as_whole, np.where(kind == INT, raw & _LOW, raw))
    return np.where(natural, whole, UNKNOWN_U64)


def bit_error_rate(coded: int) -> float:
    """Fields 220 and 222: exponent in bits 0 to 7, mantissa in 8 to 11, m x 10^-e; 15 and 255 mean none at all."""
    exponent, mantissa = coded & 0xFF, coded >> 8 & 0xF
    return 0.0 if (mantissa, exponent) == (15, 255) else mantissa * 10.0**-exponent


_RATES = np.array([bit_error_rate(coded) for coded in range(1 << 12)])


def bit_error_rates(coded: F64) -> F64:
    """The same of float64[n]; NaN where unknown, and for what is no such code."""
    known = (coded >= 0) & (coded < len(_RATES))
    rates: F64 = np.where(known, _RATES[np.where(known, coded, 0).astype(np.intp)], np.nan)
    return rates
