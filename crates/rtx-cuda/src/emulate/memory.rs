//! The memory of an emulated device: arrays with unused bytes between them, and what was last done to each byte.

use super::GAP;
use crate::array::bytes;
use crate::plan::Layout;
use rtx_compiler::Program;
use std::ops::Range;

/// Marks bytes that belong to no array; as in the runtime.
const GUARD: u32 = u32::MAX;
/// Alignment of the first byte of each part.
const ALIGN: usize = 256;

/// Collects what shall lie in memory.
#[derive(Default)]
pub(crate) struct Builder {
    parts: Vec<(Range<usize>, String)>,
    end: usize,
}

impl Builder {
    /// Room for an array; gives its offset.
    pub(crate) fn add(&mut self, name: &str, bytes: usize) -> usize {
        let offset = self.end.max(ALIGN);
        self.parts.push((offset..offset + bytes, name.to_string()));
        self.end = (offset + bytes + GAP).next_multiple_of(ALIGN);
        offset
    }

    /// Room for the arena of a program; gives its offset.
    pub(crate) fn arena(&mut self, layout: &Layout, program: &Program) -> usize {
        let base = self.end.max(ALIGN);
        let mut part = |offset: usize, bytes: usize, name: String| {
            self.parts
                .push((base + offset..base + offset + bytes, name));
        };
        for (b, at) in layout.at.iter().enumerate() {
            if let Some(offset) = at {
                let size = bytes(program.buffers[b].dtype, &layout.dims[b]);
                part(*offset, size, format!("buffer {b}"));
            }
        }
        for (name, p) in [
            ("scratch", layout.scratch),
            ("partial sums", layout.partials),
            ("tables", layout.tables),
        ] {
            part(p.offset, p.bytes, name.to_string());
        }
        self.end = (base + layout.end + GAP).next_multiple_of(ALIGN);
        base
    }

    /// The memory; all of it is NaN, -1 and true.
    pub(crate) fn build(mut self) -> Memory {
        self.parts.sort_by_key(|(r, _)| r.start);
        let bytes = self.end + ALIGN;
        let mut writes = vec![GUARD; bytes];
        for (range, _) in &self.parts {
            writes[range.clone()].fill(0);
        }
        Memory {
            words: vec![u128::MAX; bytes.div_ceil(16)],
            writes,
            reads: vec![0; bytes],
            stretch: 0,
            parts: self.parts,
        }
    }
}

/// The memory of one run.
pub(crate) struct Memory {
    words: Vec<u128>,
    writes: Vec<u32>,
    reads: Vec<u32>,
    stretch: u32,
    parts: Vec<(Range<usize>, String)>,
}

/// As `Device` in the runtime.
#[repr(C)]
pub(super) struct Device {
    base: *mut u8,
    bytes: u64,
    writes: *mut u32,
    reads: *mut u32,
    pub(super) stretch: u32,
}

impl Memory {
    /// Address of a byte, as kernels see it.
    pub(crate) fn address(&self, offset: usize) -> u64 {
        self.words.as_ptr() as u64 + offset as u64
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: any bytes are initialised numbers, and bytes have no alignment.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.words.len() * 16) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and every pattern of bits is a number.
        unsafe {
            std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.words.len() * 16)
        }
    }

    pub(crate) fn read(&self, offset: usize, bytes: usize) -> &[u8] {
        &self.bytes()[offset..offset + bytes]
    }

    pub(crate) fn write(&mut self, offset: usize, data: &[u8]) {
        self.bytes_mut()[offset..offset + data.len()].copy_from_slice(data);
    }

    /// Makes bytes what they were before anybody wrote them.
    pub(crate) fn forget(&mut self, offset: usize, bytes: usize) {
        self.bytes_mut()[offset..offset + bytes].fill(0xff);
    }

    /// Where an offset lies, for people.
    pub(crate) fn part(&self, offset: usize) -> String {
        let before = self.parts.partition_point(|(r, _)| r.start <= offset);
        let Some((range, name)) = before.checked_sub(1).map(|k| &self.parts[k]) else {
            return "before the first array".to_string();
        };
        let (at, size) = (offset - range.start, range.len());
        if at < size {
            format!("byte {at} of {name} ({size} bytes)")
        } else {
            format!("{} bytes past the end of {name} ({size} bytes)", at - size)
        }
    }

    /// The memory for one launch; `writes` past the part that belongs to no word stay guarded.
    pub(super) fn device(&mut self) -> Device {
        Device {
            base: self.words.as_mut_ptr().cast(),
            bytes: self.writes.len() as u64,
            writes: self.writes.as_mut_ptr(),
            reads: self.reads.as_mut_ptr(),
            stretch: self.stretch,
        }
    }

    pub(super) fn after(&mut self, device: &Device) {
        self.stretch = device.stretch;
    }
}
