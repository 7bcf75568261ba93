//! NumPy's `.npy` format, versions 1 to 3 (NumPy enhancement proposal 1).
//!
//! The readers of ready-made crates allocate what the header claims before looking at the file; this one
//! compares the claim with the bytes that are there.

use std::borrow::Cow;
use std::io::{self, Write};

use super::{Damage, Encoding, Kind, StoredElement};

/// The first bytes of every `.npy` file.
pub const MAGIC: &[u8] = b"\x93NUMPY";
/// Most bytes of a header's text: NumPy itself refuses longer ones.
const MAX_TEXT: usize = 10_000;
/// Length of the longest start of a file that [`Header::parse`] needs.
pub const MAX_HEADER: usize = MAX_TEXT + 12;

/// What an `.npy` file says about its array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Element type as NumPy writes it, such as `<f8`.
    pub descr: String,
    /// Whether the first index varies fastest in the file, not the last one.
    pub fortran_order: bool,
    /// Extent per axis.
    pub shape: Vec<usize>,
}

impl Header {
    /// Parses the start of a file; the second value is where the data start.
    ///
    /// # Errors
    /// Bytes that are no header of versions 1 to 3.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), Damage> {
        if !bytes.starts_with(MAGIC) {
            let problem = format!("the .npy signature is missing: {}", super::start_of(bytes));
            return Err(Damage::new(0, problem));
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
        if len > MAX_TEXT {
            let problem = format!("a header of {len} bytes ({MAX_TEXT} at most)");
            return Err(Damage::new(8, problem));
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

    /// How an element is stored; `None` where it is no number.
    pub fn encoding(&self) -> Option<Encoding> {
        let mut chars = self.descr.chars();
        let order = chars.next()?;
        let kind = match chars.next()? {
            'b' => Kind::Bool,
            'i' => Kind::Int,
            'u' => Kind::Uint,
            'f' => Kind::Float,
            'c' => Kind::Complex,
            _ => return None,
        };
        let size = chars.as_str().parse().ok()?;
        let ordered = matches!(order, '<' | '>' | '=' | '|');
        Encoding::new(kind, size, order == '>').filter(|_| ordered)
    }

    /// NumPy's name of the element type, such as `float64`, or what the file says where it is no number.
    pub fn dtype_name(&self) -> String {
        let encoding = self.encoding();
        encoding.map_or_else(|| self.descr.clone(), Encoding::name)
    }
}

/// An `.npy` file whose data are as long as its header says.
#[derive(Debug, Clone)]
pub struct Array<'a> {
    header: Header,
    encoding: Encoding,
    bytes: Cow<'a, [u8]>,
    start: usize,
}

impl<'a> Array<'a> {
    /// Checks a whole file.
    ///
    /// # Errors
    /// A damaged header, elements that are no numbers, more or fewer data than the shape needs.
    pub fn parse(bytes: impl Into<Cow<'a, [u8]>>) -> Result<Self, Damage> {
        let bytes = bytes.into();
        let (header, start) = Header::parse(&bytes)?;
        let encoding = header
            .encoding()
            .ok_or_else(|| Damage::new(0, format!("type `{}` is not numeric", header.descr)))?;
        let present = bytes.len() - start;
        let wanted = header
            .shape
            .iter()
            .try_fold(encoding.size(), |n, &extent| n.checked_mul(extent))
            .filter(|&n| n <= isize::MAX as usize);
        if wanted != Some(present) {
            let wanted = wanted.map_or("more than memory holds".into(), |n| format!("{n} bytes"));
            let problem = format!(
                "shape {:?} of `{}` needs {wanted}, but {present} bytes are left in the file",
                header.shape, header.descr,
            );
            return Err(Damage::new(start, problem));
        }
        Ok(Self {
            header,
            encoding,
            bytes,
            start,
        })
    }

    /// Type, order and shape.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How an element is stored.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The elements as stored.
    pub fn data(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// The elements in the order of the file, a complex one as two numbers.
    pub fn to_f64(&self) -> Vec<f64> {
        self.encoding.to_f64(self.data())
    }
}

/// Writes a file of version 1 with the elements in row-major order.
///
/// # Errors
/// Those of `out`, and `InvalidInput` where the number of elements is not the product of the extents.
pub fn write<T: StoredElement>(
    out: &mut impl Write,
    shape: &[usize],
    values: impl IntoIterator<Item = T>,
) -> io::Result<()> {
    let mut left = shape
        .iter()
        .try_fold(1usize, |n, &extent| n.checked_mul(extent))
        .ok_or_else(|| invalid(format!("shape {shape:?} is too large")))?;
    write_header(out, T::DESCR, shape)?;
    for value in values {
        left = left
            .checked_sub(1)
            .ok_or_else(|| invalid(format!("more elements than shape {shape:?} has")))?;
        out.write_all(value.to_le_bytes().as_ref())?;
    }
    match left {
        0 => Ok(()),
        n => Err(invalid(format!(
            "{n} elements of shape {shape:?} are missing"
        ))),
    }
}

fn write_header(out: &mut impl Write, descr: &str, shape: &[usize]) -> io::Result<()> {
    let extents: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({extents}), }}");
    // The data must start at a multiple of 64 bytes, and the header end with a line feed.
    let padded = (10 + header.len() + 1).next_multiple_of(64) - 10;
    header.extend(std::iter::repeat_n(' ', padded - header.len() - 1));
    header.push('\n');
    let len = u16::try_from(header.len()).map_err(|e| invalid(e.to_string()))?;
    out.write_all(MAGIC)?;
    out.write_all(&[1, 0])?;
    out.write_all(&len.to_le_bytes())?;
    out.write_all(header.as_bytes())
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
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
