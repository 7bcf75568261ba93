//! NumPy's `.npz`: a zip archive of `.npy` files, stored or deflated.

use std::io::{self, BufWriter, Cursor, Read, Seek, Write};

use zip::read::ZipFile;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::inflate::{can_inflate_to, read_at_most};
use super::npy::{self, Array, Header};
use super::{Damage, StoredElement};

/// The first bytes of an archive, and of an empty one.
const MAGIC: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// Whether a file that starts with these bytes is a zip archive.
pub fn is_archive(start: &[u8]) -> bool {
    MAGIC.iter().any(|magic| start.starts_with(magic))
}

/// An archive in memory, from which arrays are read one at a time.
#[derive(Debug)]
pub struct Reader<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    len: usize,
}

type Entry<'r, 'a> = ZipFile<'r, Cursor<&'a [u8]>>;

impl<'a> Reader<'a> {
    /// Reads the directory of an archive.
    ///
    /// # Errors
    /// Bytes that are no zip archive, or the first part of one.
    pub fn new(file: &'a [u8]) -> Result<Self, Damage> {
        if !is_archive(file) {
            let problem = format!("the zip signature is missing: {}", super::start_of(file));
            return Err(Damage::new(0, problem));
        }
        let len = file.len();
        let archive = ZipArchive::new(Cursor::new(file)).map_err(|e| in_directory(len, &e))?;
        Ok(Self { archive, len })
    }

    /// Names and headers of the arrays in the file's order, reading no more than their headers.
    ///
    /// # Errors
    /// A damaged entry.
    pub fn headers(&mut self) -> Result<Vec<(String, Header)>, Damage> {
        let mut out = Vec::new();
        for index in 0..self.archive.len() {
            let entry = self.archive.by_index(index);
            let mut entry = entry.map_err(|e| in_directory(self.len, &e))?;
            let Some(name) = entry.name().strip_suffix(".npy").map(str::to_owned) else {
                continue;
            };
            let start = inflate(&mut entry, npy::MAX_HEADER as u64)?;
            let (header, _) = Header::parse(&start).map_err(|d| in_entry(&entry, d))?;
            out.push((name, header));
        }
        Ok(out)
    }

    /// Reads an array of the list that [`headers`](Self::headers) gives.
    ///
    /// # Errors
    /// An absent or damaged entry.
    pub fn read(&mut self, name: &str) -> Result<Array<'static>, Damage> {
        let entry = self.archive.by_name(&format!("{name}.npy"));
        let mut entry = entry.map_err(|e| in_directory(self.len, &e))?;
        let (packed, declared) = (entry.compressed_size(), entry.size());
        if !can_inflate_to(packed, declared) {
            let problem = format!(
                "{packed} compressed bytes claim to hold {declared}, more than deflate can pack"
            );
            return Err(in_entry(&entry, Damage::new(0, problem)));
        }
        // One byte more than declared makes the archive verify the checksum and exposes a lie.
        let bytes = inflate(&mut entry, declared.saturating_add(1))?;
        Array::parse(bytes).map_err(|d| in_entry(&entry, d))
    }
}

fn in_directory(len: usize, error: &zip::result::ZipError) -> Damage {
    let problem = format!("the zip directory at the end cannot be used: {error}");
    Damage::new(len, problem)
}

fn inflate(entry: &mut Entry<'_, '_>, limit: u64) -> Result<Vec<u8>, Damage> {
    let result = read_at_most(entry.by_ref(), limit);
    result.map_err(|e| in_entry(entry, Damage::new(0, format!("cannot be unpacked: {e}"))))
}

fn in_entry(entry: &Entry<'_, '_>, damage: Damage) -> Damage {
    Damage {
        offset: entry.header_start(),
        problem: format!(
            "array `{}`, its byte {}: {}",
            entry.name(),
            damage.offset,
            damage.problem
        ),
    }
}

/// How the arrays of an archive are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all, as `numpy.savez` does: measured numbers hardly shrink.
    Stored,
    /// By deflate, as `numpy.savez_compressed` does.
    Deflated,
}

/// Writes an archive, one array after the other.
pub struct Writer<W: Write + Seek> {
    archive: ZipWriter<W>,
    options: SimpleFileOptions,
}

impl<W: Write + Seek> Writer<W> {
    /// Starts an archive.
    pub fn new(out: W, compression: Compression) -> Self {
        let method = match compression {
            Compression::Stored => CompressionMethod::Stored,
            Compression::Deflated => CompressionMethod::Deflated,
        };
        Self {
            archive: ZipWriter::new(out),
            options: SimpleFileOptions::default()
                .compression_method(method)
                .large_file(true),
        }
    }

    /// Adds an array in row-major order.
    ///
    /// # Errors
    /// Those of the output and of [`npy::write`]; a name that was used before.
    pub fn add<T: StoredElement>(
        &mut self,
        name: &str,
        shape: &[usize],
        values: impl IntoIterator<Item = T>,
    ) -> io::Result<()> {
        self.archive
            .start_file(format!("{name}.npy"), self.options)?;
        let mut buffered = BufWriter::with_capacity(1 << 16, &mut self.archive);
        npy::write(&mut buffered, shape, values)?;
        buffered.flush()
    }

    /// Writes the directory.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(self) -> io::Result<()> {
        self.archive.finish()?.flush()
    }
}
