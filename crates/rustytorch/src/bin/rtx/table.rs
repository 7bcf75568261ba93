//! Plain text tables.

/// A table whose first column is aligned left and the others right.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub fn new<S: Into<String>>(headings: impl IntoIterator<Item = S>) -> Self {
        Self {
            rows: vec![headings.into_iter().map(Into::into).collect()],
        }
    }

    /// Adds a row; a short one leaves cells empty.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The text, without a final line feed.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |c: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(c));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |row: &Vec<String>| {
            let mut out = String::new();
            for (c, &width) in widths.iter().enumerate() {
                let cell = row.get(c).map_or("", String::as_str);
                let gap = " ".repeat(width - cell.chars().count());
                out += &match c {
                    0 => format!("{cell}{gap}"),
                    _ => format!("  {gap}{cell}"),
                };
            }
            out.trim_end().to_string()
        };
        self.rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// A number with `decimals`, or a dash where there is none.
pub fn number(value: Option<f64>, decimals: usize) -> String {
    match value {
        Some(v) if v.is_finite() => format!("{v:.decimals$}"),
        _ => "-".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(["method", "r"]);
        table.row(["AHI".to_string(), number(Some(0.5), 3)]);
        table.row(["constant map".to_string(), number(None, 3)]);
        assert_eq!(
            table.render(),
            "method            r\nAHI           0.500\nconstant map      -"
        );
    }
}
