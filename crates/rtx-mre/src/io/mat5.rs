//! MATLAB level 5 MAT-files (MATLAB's `save -v6` and `-v7`).
//!
//! Layout after the MathWorks document "MAT-File Format": a 128-byte header, then elements with
//! an 8-byte tag (type, byte count), padded to 8 bytes; up to four bytes may sit inside the tag; a
//! compressed element holds one zlib stream. An array element nests its flags, dimensions, name,
//! real and imaginary parts. Values are stored by columns, in the smallest type that holds them.

use flate2::read::ZlibDecoder;
use ndarray::{ArrayD, IxDyn, ShapeBuilder};
use num_complex::Complex64;
use rtx_tensor::io::Damage;
use rtx_tensor::io::inflate::{can_inflate_to, read_at_most};

use super::VariableInfo;

const HEADER_LEN: usize = 128;
/// More than flags, dimensions and name take in any file that MATLAB writes.
const LISTING_PREFIX: u64 = 4096;
const MAX_RANK: usize = 32;

const MI_MATRIX: u32 = 14;
const MI_COMPRESSED: u32 = 15;

type Parsed<T> = Result<T, Damage>;

/// Structures within structures that are looked into.
const DEPTH: usize = 8;

/// Lists the named arrays of a file without inflating the values of those outside of structures. The arrays in a structure
/// of one element follow it, as `data.u`.
pub(super) fn list(file: &[u8]) -> Parsed<Vec<VariableInfo>> {
    let mut out = Vec::new();
    for element in Elements::new(file) {
        let element = element?;
        let prefix = element.matrix_bytes(LISTING_PREFIX)?;
        let Some(header) = ArrayHeader::parse(&mut prefix.cursor())? else {
            continue;
        };
        if header.name.is_empty() {
            continue;
        }
        out.push(header.info());
        if header.is_record() {
            let whole = element.matrix_bytes(u64::MAX)?;
            let mut cursor = whole.cursor();
            if let Some(header) = ArrayHeader::parse(&mut cursor)? {
                list_fields(&header, &mut cursor, DEPTH, &mut out)?;
            }
        }
    }
    Ok(out)
}

/// Lists the fields of a structure whose header was read.
fn list_fields(
    record: &ArrayHeader,
    cursor: &mut Cursor<'_>,
    depth: usize,
    out: &mut Vec<VariableInfo>,
) -> Parsed<()> {
    for name in record.field_names(cursor)? {
        let mut inner = cursor.nested()?;
        let Some(mut header) = ArrayHeader::parse(&mut inner)? else {
            continue;
        };
        header.name = format!("{}.{name}", record.name);
        out.push(header.info());
        if header.is_record() && depth > 0 {
            list_fields(&header, &mut inner, depth - 1, out)?;
        }
    }
    Ok(())
}

/// Reads the array called `name`, which the caller has found in [`list`]; a damaged file may
/// still not give it.
pub(super) fn read(file: &[u8], name: &str) -> Parsed<(ArrayD<Complex64>, bool)> {
    for element in Elements::new(file) {
        let element = element?;
        let prefix = element.matrix_bytes(LISTING_PREFIX)?;
        let rest = match ArrayHeader::parse(&mut prefix.cursor())? {
            Some(header) if header.name == name => "",
            Some(header) if header.is_record() => {
                let rest = name.strip_prefix(header.name.as_str());
                match rest.and_then(|rest| rest.strip_prefix('.')) {
                    Some(rest) => rest,
                    None => continue,
                }
            }
            _ => continue,
        };
        let whole = element.matrix_bytes(u64::MAX)?;
        let mut cursor = whole.cursor();
        let Some(mut header) = ArrayHeader::parse(&mut cursor)? else {
            break;
        };
        for wanted in rest.split('.').filter(|part| !part.is_empty()) {
            let names = header.field_names(&mut cursor)?;
            let mut found = None;
            for field in names {
                let inner = cursor.nested()?;
                if field == wanted {
                    found = Some(inner);
                    break;
                }
            }
            cursor = found.ok_or_else(|| {
                Damage::new(
                    file.len(),
                    format!("no field `{wanted}` of `{name}` in the file"),
                )
            })?;
            header = ArrayHeader::parse(&mut cursor)?.ok_or_else(|| {
                Damage::new(file.len(), format!("field `{wanted}` of `{name}` is empty"))
            })?;
        }
        let array = header.values(&mut cursor)?;
        return Ok((array, header.is_complex));
    }
    Err(Damage::new(
        file.len(),
        format!("no array `{name}` before the end of the file"),
    ))
}

/// The top-level elements of a file.
struct Elements<'a> {
    cursor: Cursor<'a>,
    failed: bool,
}

impl<'a> Elements<'a> {
    fn new(file: &'a [u8]) -> Self {
        let big_endian = file.get(126..128) == Some(b"MI");
        let pos = HEADER_LEN.min(file.len());
        Self {
            cursor: Cursor {
                bytes: file,
                pos,
                big_endian,
                inflated_at: None,
            },
            failed: false,
        }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Parsed<TopElement<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.cursor.pos >= self.cursor.bytes.len() {
            return None;
        }
        let at = self.cursor.pos;
        let element = self.cursor.element().and_then(|e| match e.kind {
            MI_MATRIX | MI_COMPRESSED => Ok(TopElement {
                at,
                element: e,
                big_endian: self.cursor.big_endian,
            }),
            other => Err(self.cursor.damage(
                at,
                format!("element of type {other} where an array (14) or compressed (15) is due"),
            )),
        });
        self.failed = element.is_err();
        Some(element)
    }
}

/// A top-level element: an array, perhaps compressed.
struct TopElement<'a> {
    at: usize,
    element: Element<'a>,
    big_endian: bool,
}

/// The content of an array element, or its start.
struct MatrixBytes<'a> {
    bytes: std::borrow::Cow<'a, [u8]>,
    start: usize,
    big_endian: bool,
    inflated_at: Option<usize>,
}

impl MatrixBytes<'_> {
    fn cursor(&self) -> Cursor<'_> {
        Cursor {
            bytes: &self.bytes,
            pos: self.start,
            big_endian: self.big_endian,
            inflated_at: self.inflated_at,
        }
    }
}

impl<'a> TopElement<'a> {
    /// The array's content; of a compressed one, at most its first `limit` bytes.
    fn matrix_bytes(&self, limit: u64) -> Parsed<MatrixBytes<'a>> {
        if self.element.kind == MI_MATRIX {
            let end = self.element.start + self.element.data.len();
            return Ok(MatrixBytes {
                bytes: std::borrow::Cow::Borrowed(&self.element.file[..end]),
                start: self.element.start,
                big_endian: self.big_endian,
                inflated_at: None,
            });
        }
        let zlib = |e: std::io::Error| {
            Damage::new(
                self.at,
                format!("the compressed element cannot be inflated: {e}"),
            )
        };
        let compressed = self.element.data;
        let tag = read_at_most(ZlibDecoder::new(compressed), 8).map_err(zlib)?;
        let tag_cursor = Cursor {
            bytes: &tag,
            pos: 0,
            big_endian: self.big_endian,
            inflated_at: Some(self.at),
        };
        let (kind, declared) = (tag_cursor.u32_at(0)?, tag_cursor.u32_at(4)?);
        if kind != MI_MATRIX {
            return Err(Damage::new(
                self.at,
                format!("the compressed element holds type {kind}, not an array (14)"),
            ));
        }
        let total = u64::from(declared) + 8;
        if !can_inflate_to(compressed.len() as u64, total) {
            return Err(Damage::new(
                self.at,
                format!(
                    "{} compressed bytes claim to hold {declared}, more than zlib can pack",
                    compressed.len()
                ),
            ));
        }
        // Reading past the declared end makes the decoder verify the stream's checksum.
        let wanted = total.saturating_add(8).min(limit.max(8));
        let bytes = read_at_most(ZlibDecoder::new(compressed), wanted).map_err(zlib)?;
        if (bytes.len() as u64) < total.min(wanted) {
            return Err(Damage::new(
                self.at,
                format!(
                    "the compressed element holds {} bytes and declares {total}",
                    bytes.len()
                ),
            ));
        }
        Ok(MatrixBytes {
            bytes: bytes.into(),
            start: 8,
            big_endian: self.big_endian,
            inflated_at: Some(self.at),
        })
    }
}

/// Flags, dimensions and name of an array element.
struct ArrayHeader {
    class: u8,
    is_complex: bool,
    is_logical: bool,
    shape: Vec<usize>,
    name: String,
}

impl ArrayHeader {
    /// Parses up to the name; `None` for an empty element, which stands for an empty array.
    fn parse(cursor: &mut Cursor<'_>) -> Parsed<Option<Self>> {
        if cursor.pos >= cursor.bytes.len() {
            return Ok(None);
        }
        let at = cursor.pos;
        let flags = cursor.element()?;
        if flags.kind != 6 || flags.data.len() != 8 {
            return Err(cursor.damage(
                at,
                format!(
                    "array flags of type {} with {} bytes, not type 6 with 8",
                    flags.kind,
                    flags.data.len()
                ),
            ));
        }
        let word = cursor.u32_at(flags.start)?;
        let class = (word & 0xff) as u8;
        // Objects of MATLAB classes carry no dimensions: their name follows at once.
        let shape = if class == 17 {
            Vec::new()
        } else {
            Self::dimensions(cursor)?
        };
        let at = cursor.pos;
        let name = cursor.element()?;
        if !matches!(name.kind, 1 | 2 | 16) {
            return Err(cursor.damage(
                at,
                format!("array name of type {}, not text (1, 2 or 16)", name.kind),
            ));
        }
        Ok(Some(Self {
            class,
            is_complex: word & 0x0800 != 0,
            is_logical: word & 0x0200 != 0,
            shape,
            name: String::from_utf8_lossy(name.data).into_owned(),
        }))
    }

    fn dimensions(cursor: &mut Cursor<'_>) -> Parsed<Vec<usize>> {
        let at = cursor.pos;
        let dims = cursor.element()?;
        let count = dims.data.len() / 4;
        if !matches!(dims.kind, 5 | 6)
            || dims.data.len() % 4 != 0
            || !(2..=MAX_RANK).contains(&count)
        {
            return Err(cursor.damage(
                at,
                format!(
                    "dimensions of type {} with {} bytes, not type 5 with 2 to {MAX_RANK} \
                     four-byte extents",
                    dims.kind,
                    dims.data.len()
                ),
            ));
        }
        (0..count)
            .map(|i| {
                let value = cursor.u32_at(dims.start + 4 * i)?;
                if value > i32::MAX as u32 {
                    return Err(cursor.damage(at, format!("extent {i} is negative")));
                }
                Ok(value as usize)
            })
            .collect()
    }

    /// Whether this is a structure of one element, whose fields are arrays with one name each.
    fn is_record(&self) -> bool {
        self.class == 2 && self.shape.iter().all(|extent| *extent == 1)
    }

    /// The names of the fields of a structure, which follow its own name.
    fn field_names(&self, cursor: &mut Cursor<'_>) -> Parsed<Vec<String>> {
        let at = cursor.pos;
        if !self.is_record() {
            return Err(cursor.damage(
                at,
                format!("`{}` is no structure of one element", self.name),
            ));
        }
        let length = cursor.element()?;
        let len = cursor.u32_at(length.start)? as usize;
        let names = cursor.element()?;
        if length.kind != 5 || len == 0 || names.kind != 1 || names.data.len() % len != 0 {
            return Err(cursor.damage(
                at,
                format!(
                    "field names of type {} with {} bytes of {len} each, not type 1 with a multiple",
                    names.kind,
                    names.data.len()
                ),
            ));
        }
        let text = |bytes: &[u8]| {
            let end = bytes.iter().position(|b| *b == 0).unwrap_or(len);
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        Ok(names.data.chunks_exact(len).map(text).collect())
    }

    fn is_numeric(&self) -> bool {
        (6..=15).contains(&self.class)
    }

    fn info(&self) -> VariableInfo {
        let class = match self.class {
            1 => "cell",
            2 => "struct",
            3 => "object",
            4 => "char",
            5 => "sparse",
            6 => "double",
            7 => "single",
            8 => "int8",
            9 if self.is_logical => "logical",
            9 => "uint8",
            10 => "int16",
            11 => "uint16",
            12 => "int32",
            13 => "uint32",
            14 => "int64",
            15 => "uint64",
            16 => "function handle",
            17 => "class object",
            _ => "unknown class",
        };
        VariableInfo {
            name: self.name.clone(),
            shape: self.shape.clone(),
            dtype: if self.is_complex {
                format!("complex {class}")
            } else {
                class.into()
            },
            numeric: self.is_numeric(),
        }
    }

    /// Reads the values that follow the name.
    fn values(&self, cursor: &mut Cursor<'_>) -> Parsed<ArrayD<Complex64>> {
        let at = cursor.pos;
        if !self.is_numeric() {
            return Err(cursor.damage(at, format!("array `{}` is not numeric", self.name)));
        }
        let count = self
            .shape
            .iter()
            .try_fold(1_usize, |n, &extent| n.checked_mul(extent))
            .ok_or_else(|| cursor.damage(at, format!("shape {:?} overflows", self.shape)))?;
        let real = cursor.numbers(count)?;
        let values: Vec<Complex64> = if self.is_complex {
            let imag = cursor.numbers(count)?;
            real.iter()
                .zip(imag.iter())
                .map(|(re, im)| Complex64::new(re, im))
                .collect()
        } else {
            real.iter().map(Complex64::from).collect()
        };
        ArrayD::from_shape_vec(IxDyn(&self.shape).f(), values)
            .map_err(|e| cursor.damage(at, format!("shape {:?}: {e}", self.shape)))
    }
}

/// A position in a file, or in an inflated element.
struct Cursor<'a> {
    bytes: &'a [u8],
    pos: usize,
    big_endian: bool,
    /// Where the compressed element starts in the file; `None` outside of one.
    inflated_at: Option<usize>,
}

/// One element: its type, its data, and where these start.
struct Element<'a> {
    kind: u32,
    start: usize,
    data: &'a [u8],
    file: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn damage(&self, at: usize, problem: impl Into<String>) -> Damage {
        let problem = problem.into();
        match self.inflated_at {
            None => Damage::new(at, problem),
            Some(start) => Damage::new(
                start,
                format!("in the compressed element, inflated byte {at}: {problem}"),
            ),
        }
    }

    fn u32_at(&self, at: usize) -> Parsed<u32> {
        let bytes = at
            .checked_add(4)
            .and_then(|end| self.bytes.get(at..end))
            .and_then(|b| <[u8; 4]>::try_from(b).ok())
            .ok_or_else(|| self.damage(at, "the data end where 4 bytes are due"))?;
        Ok(if self.big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        })
    }

    /// Takes the next element.
    fn element(&mut self) -> Parsed<Element<'a>> {
        let at = self.pos;
        let first = self.u32_at(at)?;
        let (kind, len, start) = if first >> 16 != 0 {
            let len = (first >> 16) as usize;
            if len > 4 {
                return Err(self.damage(at, format!("small element of {len} bytes (at most 4)")));
            }
            (first & 0xffff, len, at + 4)
        } else {
            (first, self.u32_at(at + 4)? as usize, at + 8)
        };
        let left = self.bytes.len().saturating_sub(start);
        if len > left {
            return Err(self.damage(
                at,
                format!("element of {len} bytes, but only {left} are left"),
            ));
        }
        let end = start + len;
        // Compressed elements are not padded; the last padding of a file may be missing.
        let next = if kind == MI_COMPRESSED {
            end
        } else {
            end.next_multiple_of(8)
        };
        self.pos = if start == at + 4 { at + 8 } else { next }.min(self.bytes.len());
        Ok(Element {
            kind,
            start,
            data: &self.bytes[start..end],
            file: self.bytes,
        })
    }

    /// Takes an array element and returns a position at its content, which ends where that ends.
    fn nested(&mut self) -> Parsed<Cursor<'a>> {
        let at = self.pos;
        let element = self.element()?;
        if element.kind != MI_MATRIX {
            return Err(self.damage(
                at,
                format!("field of type {}, not an array (14)", element.kind),
            ));
        }
        Ok(Cursor {
            bytes: &self.bytes[..element.start + element.data.len()],
            pos: element.start,
            big_endian: self.big_endian,
            inflated_at: self.inflated_at,
        })
    }

    /// Takes an element that must hold `count` numbers of any type.
    fn numbers(&mut self, count: usize) -> Parsed<Numbers<'a>> {
        let at = self.pos;
        let element = self.element()?;
        let size = match element.kind {
            1 | 2 => 1,
            3 | 4 => 2,
            5..=7 => 4,
            9 | 12 | 13 => 8,
            other => return Err(self.damage(at, format!("type {other} is no type of numbers"))),
        };
        if count.checked_mul(size) != Some(element.data.len()) {
            return Err(self.damage(
                at,
                format!(
                    "{count} numbers of {size} bytes are due, {} bytes are there",
                    element.data.len()
                ),
            ));
        }
        Ok(Numbers {
            kind: element.kind,
            size,
            data: element.data,
            big_endian: self.big_endian,
        })
    }
}

/// Numbers as stored: in any type, in either byte order.
struct Numbers<'a> {
    kind: u32,
    size: usize,
    data: &'a [u8],
    big_endian: bool,
}

impl Numbers<'_> {
    /// The values; integers above 2^53 round to the nearest double.
    fn iter(&self) -> impl Iterator<Item = f64> + '_ {
        self.data.chunks_exact(self.size).map(|chunk| {
            let mut le = [0_u8; 8];
            le[..self.size].copy_from_slice(chunk);
            if self.big_endian {
                le[..self.size].reverse();
            }
            let raw = u64::from_le_bytes(le);
            match self.kind {
                1 => f64::from(raw as u8 as i8),
                3 => f64::from(raw as u16 as i16),
                5 => f64::from(raw as u32 as i32),
                7 => f64::from(f32::from_bits(raw as u32)),
                9 => f64::from_bits(raw),
                12 => raw as i64 as f64,
                _ => raw as f64,
            }
        })
    }
}
