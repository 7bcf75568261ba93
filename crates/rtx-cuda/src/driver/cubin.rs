//! Checks of compiled code before the driver sees it.

use crate::{Error, Result};

/// The driver reads a cubin, an ELF file of 64 bits, without being told its length: every table and section
/// must lie within the bytes at hand.
///
/// # Errors
/// [`Error::Misuse`] for anything else.
pub(crate) fn check(image: &[u8]) -> Result<()> {
    inspect(image).ok_or_else(|| Error::Misuse {
        call: "Module::load",
        detail: format!(
            "{} bytes that are no cubin, or a truncated one: compile the kernel again",
            image.len()
        ),
    })
}

fn inspect(image: &[u8]) -> Option<()> {
    const NOBITS: u32 = 8;
    // ELF, 64 bits, little-endian.
    if image.get(..6)? != [0x7f, b'E', b'L', b'F', 2, 1] {
        return None;
    }
    let within =
        |offset: u64, size: u64| (offset.checked_add(size)? <= image.len() as u64).then_some(());
    let (programs, program_size, program_count) =
        (u64_at(image, 32)?, u16_at(image, 54)?, u16_at(image, 56)?);
    within(programs, u64::from(program_size) * u64::from(program_count))?;
    for i in 0..u64::from(program_count) {
        let header = usize::try_from(programs + i * u64::from(program_size)).ok()?;
        within(u64_at(image, header + 8)?, u64_at(image, header + 32)?)?;
    }
    let (sections, section_size, section_count) =
        (u64_at(image, 40)?, u16_at(image, 58)?, u16_at(image, 60)?);
    if section_count == 0 {
        return None;
    }
    within(sections, u64::from(section_size) * u64::from(section_count))?;
    for i in 0..u64::from(section_count) {
        let header = usize::try_from(sections + i * u64::from(section_size)).ok()?;
        if u32_at(image, header + 4)? != NOBITS {
            within(u64_at(image, header + 24)?, u64_at(image, header + 32)?)?;
        }
    }
    Some(())
}

fn bytes_at<const N: usize>(image: &[u8], at: usize) -> Option<[u8; N]> {
    image.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u16_at(image: &[u8], at: usize) -> Option<u16> {
    bytes_at(image, at).map(u16::from_le_bytes)
}

fn u32_at(image: &[u8], at: usize) -> Option<u32> {
    bytes_at(image, at).map(u32::from_le_bytes)
}

fn u64_at(image: &[u8], at: usize) -> Option<u64> {
    bytes_at(image, at).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn what_is_no_cubin_is_refused() {
        assert!(check(b"").is_err());
        assert!(check(b"// source text, not code").is_err());
        let mut header = vec![0u8; 64];
        header[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        assert!(check(&header).is_err(), "no section");
        // One section header of 64 bytes said to start at the end of the image.
        header[40] = 64;
        header[58] = 64;
        header[60] = 1;
        assert!(check(&header).is_err());
        header.resize(128, 0);
        assert!(check(&header).is_ok());
        // That section said to have more bytes than there are.
        header[64 + 32..64 + 40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(check(&header).is_err());
    }
}
