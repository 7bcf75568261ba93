//! NumPy's `.npy` format, versions 1 to 3 (NumPy enhancement proposal 1).
//!
//! The readers of ready-made crates allocate what the header claims before looking at the file;
//! this one compares the claim with the bytes that are there.

use ndarray::{ArrayD, IxDyn, ShapeBuilder};
use num_complex::Complex64;

use super::VariableInfo;
use super::bytes::Damage;

pub(super) const MAGIC: &[u8] = b"\x93NUMPY";
/// Length of the longest prefix that [`info`] needs: NumPy itself refuses longer headers.
pub(super) const MAX_HEADER: usize = 10_000 + 12;

/// Name, shape and type from the start of a file.
pub(super) fn info(name: &str, bytes: &[u8]) -> Result<VariableInfo, Damage> {
    let (header, _) = Header::parse(bytes)?;
    Ok(VariableInfo {
        name: name.into(),
        dtype: header.dtype_name(),
        numeric: header.element().is_some(),
        shape: header.shape,
    })
}

/// Reads a whole file; the flag says whether it stores complex numbers.
pub(super) fn decode(bytes: &[u8]) -> Result<(ArrayD<Complex64>, bool), Damage> {
    let (header, start) = Header::parse(bytes)?;
    let element = header
        .element()
        .ok_or_else(|| Damage::new(0, format!("type `{}` is not numeric", header.descr)))?;
    let data = &bytes[start..];
    let wanted = header
        .shape
        .iter()
        .try_fold(element.size, |n, &extent| n.checked_mul(extent))
        .filter(|&n| n <= isize::MAX as usize);
    if wanted != Some(data.len()) {
        let wanted = wanted.map_or("more than memory holds".into(), |n| format!("{n} bytes"));
        return Err(Damage::new(
            start,
            format!(
                "shape {:?} of `{}` needs {wanted}, but {} bytes are left in the file",
                header.shape,
                header.descr,
                data.len()
            ),
        ));
    }
    let values: Vec<Complex64> = data
        .chunks_exact(element.size)
        .map(|chunk| element.value(chunk))
        .collect();
    let shape = IxDyn(&header.shape);
    let array = if header.fortran_order {
        ArrayD::from_shape_vec(shape.f(), values)
    } else {
        ArrayD::from_shape_vec(shape, values)
    };
    let array = array.map_err(|e| Damage::new(start, format!("shape {:?}: {e}", header.shape)))?;
    Ok((array, element.kind == 'c'))
}

struct Header {
    descr: String,
    fortran_order: bool,
    shape: Vec<usize>,
}

/// A numeric element type.
#[derive(Clone, Copy)]
struct Element {
    kind: char,
    size: usize,
    big_endian: bool,
}

impl Element {
    fn value(self, chunk: &[u8]) -> Complex64 {
        if self.kind == 'c' {
            let (re, im) = chunk.split_at(self.size / 2);
            Complex64::new(self.real(re), self.real(im))
        } else {
            Complex64::new(self.real(chunk), 0.0)
        }
    }

    fn real(self, chunk: &[u8]) -> f64 {
        let mut le = [0_u8; 8];
        let n = chunk.len().min(8);
        le[..n].copy_from_slice(&chunk[..n]);
        if self.big_endian {
            le[..n].reverse();
        }
        let raw = u64::from_le_bytes(le);
        match (self.kind, n) {
            ('f' | 'c', 4) => f64::from(f32::from_bits(raw as u32)),
            ('f' | 'c', _) => f64::from_bits(raw),
            ('i', 1) => f64::from(raw as u8 as i8),
            ('i', 2) => f64::from(raw as u16 as i16),
            ('i', 4) => f64::from(raw as u32 as i32),
            ('i', _) => raw as i64 as f64,
            ('b', _) => f64::from(u8::from(raw != 0)),
            _ => raw as f64,
        }
    }
}

impl Header {
    /// Parses the header; the second value is where the data start.
    fn parse(bytes: &[u8]) -> Result<(Self, usize), Damage> {
        if !bytes.starts_with(MAGIC) {
            return Err(Damage::new(0, "the .npy signature is missing"));
        }
        let short = || Damage::new(bytes.len(), "the file ends inside its header");
        let version = *bytes.get(6).ok_or_else(short)?;
        let (start, len) = match version {
            1 => {
                let b = bytes.get(8..10).ok_or_else(short)?;
                (10, usize::from(u16::from_le_bytes([b[0], b[1]])))
            }
            2 | 3 => {
                let b = bytes.get(8..12).ok_or_else(short)?;
                (12, u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize)
            }
            v => {
                return Err(Damage::new(
                    6,
                    format!("format version {v} (1 to 3 are known)"),
                ));
            }
        };
        if len > MAX_HEADER - 12 {
            return Err(Damage::new(
                8,
                format!("a header of {len} bytes (10000 at most)"),
            ));
        }
        let text = bytes.get(start..start + len).ok_or_else(short)?;
        let mut parser = Dict { text, pos: 0 };
        let header = parser.header().ok_or_else(|| {
            Damage::new(
                start + parser.pos,
                "the header is not a dictionary of descr, fortran_order and shape",
            )
        })?;
        Ok((header, start + len))
    }

    fn element(&self) -> Option<Element> {
        let mut chars = self.descr.chars();
        let order = chars.next()?;
        let kind = chars.next()?;
        let size: usize = chars.as_str().parse().ok()?;
        let known = match kind {
            'f' => matches!(size, 4 | 8),
            'c' => matches!(size, 8 | 16),
            'i' | 'u' => matches!(size, 1 | 2 | 4 | 8),
            'b' => size == 1,
            _ => false,
        };
        let ordered = matches!(order, '<' | '>' | '=' | '|');
        (known && ordered).then_some(Element {
            kind,
            size,
            big_endian: order == '>',
        })
    }

    fn dtype_name(&self) -> String {
        match self.element() {
            Some(Element { kind: 'b', .. }) => "bool".into(),
            Some(Element { kind, size, .. }) => {
                let word = match kind {
                    'f' => "float",
                    'c' => "complex",
                    'i' => "int",
                    _ => "uint",
                };
                format!("{word}{}", 8 * size)
            }
            None => self.descr.clone(),
        }
    }
}

/// Parser of the Python dictionary in a header: only what NumPy writes there.
struct Dict<'a> {
    text: &'a [u8],
    pos: usize,
}

impl Dict<'_> {
    fn header(&mut self) -> Option<Header> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect(b'{')?;
        while !self.accept(b'}') {
            let key = self.string()?;
            self.expect(b':')?;
            match key.as_str() {
                "descr" => descr = Some(self.descr()?),
                "fortran_order" => fortran_order = Some(self.boolean()?),
                "shape" => shape = Some(self.tuple()?),
                _ => return None,
            }
            if !self.accept(b',') {
                self.expect(b'}')?;
                break;
            }
        }
        Some(Header {
            descr: descr?,
            fortran_order: fortran_order?,
            shape: shape?,
        })
    }

    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.pos).is_some_and(u8::is_ascii_whitespace) {
            self.pos += 1;
        }
        self.text.get(self.pos).copied()
    }

    fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.pos += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.accept(byte).then_some(())
    }

    fn string(&mut self) -> Option<String> {
        let quote = self.peek().filter(|b| matches!(b, b'\'' | b'"'))?;
        let rest = &self.text[self.pos + 1..];
        let len = rest.iter().position(|&b| b == quote)?;
        self.pos += len + 2;
        Some(String::from_utf8_lossy(&rest[..len]).into_owned())
    }

    /// A type string; a structured type (a list) is kept as text, to be refused by name.
    fn descr(&mut self) -> Option<String> {
        if self.peek()? != b'[' {
            return self.string();
        }
        let rest = &self.text[self.pos..];
        let len = rest.iter().rposition(|&b| b == b']')? + 1;
        self.pos += len;
        Some(String::from_utf8_lossy(&rest[..len]).into_owned())
    }

    fn boolean(&mut self) -> Option<bool> {
        self.peek()?;
        let rest = &self.text[self.pos..];
        let (value, len) = match () {
            () if rest.starts_with(b"True") => (true, 4),
            () if rest.starts_with(b"False") => (false, 5),
            () => return None,
        };
        self.pos += len;
        Some(value)
    }

    fn tuple(&mut self) -> Option<Vec<usize>> {
        let mut out = Vec::new();
        self.expect(b'(')?;
        while !self.accept(b')') {
            self.peek()?;
            let digits = self.text[self.pos..]
                .iter()
                .take_while(|b| b.is_ascii_digit())
                .count();
            let text = std::str::from_utf8(&self.text[self.pos..self.pos + digits]).ok()?;
            out.push(text.parse().ok()?);
            self.pos += digits;
            // Python 2 wrote long integers with a trailing L.
            self.accept(b'L');
            if !self.accept(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Some(out)
    }
}
