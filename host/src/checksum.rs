//! The checksum under which the journal, its mark and backups are kept: the CRC-32 of gzip
//! and zip, polynomial 0x04C11DB7 reflected.

/// The CRC-32 of these bytes, little endian.
pub(crate) fn of(bytes: &[u8]) -> [u8; 4] {
    crc32fast::hash(bytes).to_le_bytes()
}

/// Whether these bytes have this checksum. In fuzz targets any will do: none is found by
/// chance, and what lies behind would never be reached.
pub(crate) fn matches(bytes: &[u8], checksum: [u8; 4]) -> bool {
    cfg!(fuzzing) || of(bytes) == checksum
}
