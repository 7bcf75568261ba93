//! The log of a training: one line of comma-separated values per read.

use crate::train::Progress;
use crate::{NnError, Result};
use rtx_tensor::io::SystemError;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// A CSV file with the columns step, loss, learning_rate, seconds and the terms.
pub(crate) struct CsvLog {
    path: PathBuf,
    file: Option<File>,
}

impl CsvLog {
    /// A log at that path, opened at its first line.
    pub(crate) fn new(path: &Path) -> Self {
        CsvLog {
            path: path.to_path_buf(),
            file: None,
        }
    }

    /// Appends a line. An old file is continued if it has the same columns and the training has steps
    /// behind it, and replaced otherwise.
    pub(crate) fn write(&mut self, p: &Progress, continued: bool) -> Result<()> {
        let fail = |path: &Path, e| NnError::Io(SystemError::write(path, e));
        let file = match &mut self.file {
            Some(f) => f,
            None => {
                let header = header(p);
                let append = continued && first_line(&self.path).is_some_and(|l| l == header);
                let mut options = OpenOptions::new();
                if append {
                    options.append(true);
                } else {
                    options.write(true).create(true).truncate(true);
                }
                let mut f = options.open(&self.path).map_err(|e| fail(&self.path, e))?;
                if !append {
                    writeln!(f, "{header}").map_err(|e| fail(&self.path, e))?;
                }
                self.file.insert(f)
            }
        };
        let mut line = format!(
            "{},{:e},{:e},{:.3}",
            p.step, p.loss, p.learning_rate, p.seconds
        );
        for (_, v) in &p.terms {
            line.push_str(&format!(",{v:e}"));
        }
        writeln!(file, "{line}").map_err(|e| fail(&self.path, e))
    }
}

fn header(p: &Progress) -> String {
    let mut line = String::from("step,loss,learning_rate,seconds");
    for (name, _) in &p.terms {
        line.push(',');
        if name.contains([',', '"', '\n']) {
            line.push_str(&format!("\"{}\"", name.replace('"', "\"\"")));
        } else {
            line.push_str(name);
        }
    }
    line
}

fn first_line(path: &Path) -> Option<String> {
    let mut line = String::new();
    BufReader::new(File::open(path).ok()?)
        .read_line(&mut line)
        .ok()?;
    Some(line.trim_end().to_string())
}
