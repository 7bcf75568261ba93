//! NumPy's `.npz`: a zip archive of `.npy` files, stored or deflated.

use std::io::{Cursor, Read};

use ndarray::ArrayD;
use num_complex::Complex64;
use zip::ZipArchive;
use zip::read::ZipFile;

use super::VariableInfo;
use super::bytes::{Damage, can_inflate_to, read_at_most};
use super::npy;

type Archive<'a> = ZipArchive<Cursor<&'a [u8]>>;
type Entry<'a, 'b> = ZipFile<'a, Cursor<&'b [u8]>>;

/// Lists the arrays, reading no more than their headers.
pub(super) fn list(file: &[u8]) -> Result<Vec<VariableInfo>, Damage> {
    let mut archive = open(file)?;
    let mut out = Vec::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|e| zip_damage(file, &e))?;
        let Some(name) = entry.name().strip_suffix(".npy").map(str::to_owned) else {
            continue;
        };
        let start = inflate(&mut entry, npy::MAX_HEADER as u64)?;
        out.push(npy::info(&name, &start).map_err(|d| in_entry(&entry, d))?);
    }
    Ok(out)
}

/// Reads the array `name`, which the caller has found in [`list`].
pub(super) fn read(file: &[u8], name: &str) -> Result<(ArrayD<Complex64>, bool), Damage> {
    let mut archive = open(file)?;
    let mut entry = archive
        .by_name(&format!("{name}.npy"))
        .map_err(|e| zip_damage(file, &e))?;
    if !can_inflate_to(entry.compressed_size(), entry.size()) {
        let problem = format!(
            "{} compressed bytes claim to hold {}, more than deflate can pack",
            entry.compressed_size(),
            entry.size()
        );
        return Err(in_entry(&entry, Damage::new(0, problem)));
    }
    let declared = entry.size();
    // One byte more than declared makes the archive verify the checksum and exposes a lie.
    let bytes = inflate(&mut entry, declared.saturating_add(1))?;
    npy::decode(&bytes).map_err(|d| in_entry(&entry, d))
}

fn open(file: &[u8]) -> Result<Archive<'_>, Damage> {
    ZipArchive::new(Cursor::new(file)).map_err(|e| zip_damage(file, &e))
}

fn zip_damage(file: &[u8], error: &zip::result::ZipError) -> Damage {
    Damage::new(
        file.len(),
        format!("the zip directory at the end cannot be read: {error}"),
    )
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
