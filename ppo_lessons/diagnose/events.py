"""Read the scalars of TensorBoard's event files, without TensorBoard.

A file is a list of records; a record is a length, a checksum, so many bytes, and a checksum. The
bytes are one message: numbered fields, each with a type. Here only these are looked at:

    message   2 step    5 summary
    summary   1 value, repeated
    value     1 tag     2 number (float32)     8 tensor
    tensor    5 float32s     6 float64s

Format: TensorFlow's record files, and Protocol Buffers' wire format.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def read_scalars(path: Path) -> dict[str, list[tuple[int, float]]]:
    """Read all scalars of one file.

    A last record that is cut off is left out: a run may be under way.

    Args:
        path: of a file that TensorBoard can read.

    Returns:
        For each tag the steps and numbers, in the order in which they were written.

    Raises:
        ValueError: if the file is damaged or none of TensorBoard's.
    """
    found: dict[str, list[tuple[int, float]]] = {}
    try:
        for record in records(path.read_bytes()):
            for tag, step, number in scalars(record):
                found.setdefault(tag, []).append((step, number))
    except (struct.error, IndexError, UnicodeDecodeError, ValueError) as error:
        raise ValueError(
            f"{path} cannot be read as an event file of TensorBoard ({error}); expected a file "
            "that a SummaryWriter wrote. It was left as it is. Give the folder of the run, or "
            "another file."
        ) from None
    return found


def records(content: bytes) -> Iterator[bytes]:
    """Take the records out of a file.

    Raises:
        ValueError: if a checksum of a length does not agree.
    """
    place = 0
    while place + 12 <= len(content):
        header = content[place : place + 8]
        (length,) = struct.unpack("<Q", header)
        (checksum,) = struct.unpack("<I", content[place + 8 : place + 12])
        if masked_crc(header) != checksum:
            raise ValueError(f"a checksum is wrong at byte {place}")
        if place + 16 + length > len(content):
            return
        yield content[place + 12 : place + 12 + length]
        place += 16 + length


def scalars(record: bytes) -> Iterator[tuple[str, int, float]]:
    """Take tag, step and number out of one message."""
    step, summaries = 0, []
    for number, value in message(record):
        if number == 2 and isinstance(value, int):
            step = value
        elif number == 5 and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for number, value in message(summary):
            if number == 1 and isinstance(value, bytes):
                tag, scalar = tag_and_number(value)
                if scalar is not None:
                    yield tag, step, scalar


def tag_and_number(value: bytes) -> tuple[str, float | None]:
    """Take the tag and its number out of one value; None if it is no single number."""
    tag, scalar = "", None
    for number, content in message(value):
        if number == 1 and isinstance(content, bytes):
            tag = content.decode()
        elif number == 2 and isinstance(content, bytes) and len(content) == 4:
            (scalar,) = struct.unpack("<f", content)
        elif number == 8 and isinstance(content, bytes):
            scalar = single_number(content)
    return tag, scalar


def single_number(tensor: bytes) -> float | None:
    """Take the one number out of a tensor, if it holds one."""
    for number, content in message(tensor):
        for field, letter in ((5, "f"), (6, "d")):
            size = struct.calcsize(letter)
            if number == field and isinstance(content, bytes) and len(content) == size:
                return struct.unpack(f"<{letter}", content)[0]
    return None


def message(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Go through the fields of a message: whole numbers as int, all else as bytes.

    Raises:
        ValueError: if a field has no known type.
    """
    place = 0
    while place < len(content):
        key, place = varint(content, place)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, place = varint(content, place)
            yield number, value
            continue
        if kind == BYTES:
            size, place = varint(content, place)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise ValueError(f"field {number} has the unknown type {kind}")
        if place + size > len(content):
            raise ValueError(f"field {number} is cut off")
        yield number, content[place : place + size]
        place += size


def varint(content: bytes, place: int) -> tuple[int, int]:
    """Read a whole number of 7 bits per byte, the lowest first; give it and the place behind it."""
    number = shift = 0
    while True:
        byte = content[place]
        number |= (byte & 0x7F) << shift
        place += 1
        if byte < 0x80:
            return number, place
        shift += 7


def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


CRC_TABLE = _crc_table()


def masked_crc(content: bytes) -> int:
    """Give the checksum of a record: CRC-32C, turned by 15 bits and shifted by a constant."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
