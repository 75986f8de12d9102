// SPDX-License-Identifier: BSD-3-Clause
//! The files and the terminal of one run. Files are opened before anything is measured, so that a wrong path
//! costs no time.

use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Results;
use super::tidy::Tidy;
use crate::error::{Error, Result};

/// What rank 0 writes to.
pub struct Output {
    csv: Option<Tidy<File>>,
    json: Option<Target>,
    progress: ProgressBar,
}

/// Which rows the CSV file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Those of `run`.
    Rows,
    /// Those of `compare` and `merge`.
    Comparisons,
}

/// A file that is written at the end. One that was not there before goes again if nothing was written.
struct Target {
    path: PathBuf,
    file: File,
    fresh: bool,
    written: bool,
}

impl Target {
    fn open(path: &Path) -> Result<Target> {
        let fresh = !path.exists();
        let file =
            OpenOptions::new().create(true).write(true).truncate(false).open(path).map_err(|e| cannot(path, e))?;
        Ok(Target { path: path.to_owned(), file, fresh, written: false })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        // Devices cannot be cut, and need not be.
        if self.file.metadata().is_ok_and(|m| m.is_file()) {
            self.file.set_len(0).map_err(|e| cannot(&self.path, e))?;
        }
        self.written = true;
        self.file.write_all(bytes).and_then(|()| self.file.flush()).map_err(|e| cannot(&self.path, e))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if self.fresh && !self.written {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn cannot(path: &Path, source: std::io::Error) -> Error {
    Error::usage(format!("{} cannot be written: {source}", path.display()))
}

/// Writes a whole file; for the commands that do not measure.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    Target::open(path)?.write(bytes)
}

/// A line on standard output. A reader that went away (`| head`) is no error.
pub fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::File { path: "standard output".into(), source: e })
        }
        _ => Ok(()),
    }
}

impl Output {
    /// Opens the files. `steps` is the length of the progress bar, which is drawn only on a terminal, and
    /// only between cases.
    pub fn open(csv: Option<&Path>, json: Option<&Path>, kind: Kind, steps: usize) -> Result<Output> {
        if let (Some(csv), Some(json)) = (csv, json)
            && csv == json
        {
            return Err(Error::usage(format!("--csv and --json both name {}", csv.display())));
        }
        let json = json.map(Target::open).transpose()?;
        let csv = match csv {
            Some(path) => {
                let file = File::create(path).map_err(|e| cannot(path, e))?;
                let name = path.display().to_string();
                Some(match kind {
                    Kind::Rows => Tidy::of_rows(file, &name)?,
                    Kind::Comparisons => Tidy::of_comparisons(file, &name)?,
                })
            }
            None => None,
        };
        let progress = ProgressBar::new(steps as u64);
        // No thread may draw while calls are timed: every change is drawn at once, by this one.
        progress.set_draw_target(if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        });
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg} (about {eta} left)") {
            progress.set_style(style);
        }
        Ok(Output { csv, json, progress })
    }

    /// What is about to be measured.
    pub fn next(&self, what: &str) {
        self.progress.set_message(what.to_owned());
        self.progress.tick();
    }

    /// One case is done: its line, and its CSV rows by `write`.
    pub fn done(&mut self, line: &str, write: impl FnOnce(&mut Tidy<File>) -> Result<()>) -> Result<()> {
        self.progress.suspend(|| say(line))?;
        self.progress.inc(1);
        self.csv.as_mut().map_or(Ok(()), write)
    }

    /// One step without a line is done.
    pub fn step(&self) {
        self.progress.inc(1);
    }

    /// A line that is no row.
    pub fn say(&self, line: &str) -> Result<()> {
        self.progress.suspend(|| say(line))
    }

    /// Everything is done: writes the JSON file.
    pub fn finish(&mut self, results: &Results) -> Result<()> {
        self.finish_with(|| results.text())
    }

    /// As [`Output::finish`], with a text of another kind.
    pub fn finish_with(&mut self, text: impl FnOnce() -> Result<String>) -> Result<()> {
        self.progress.finish_and_clear();
        match &mut self.json {
            Some(target) => target.write(text()?.as_bytes()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::{results, row};
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("mpiperf-{}-{name}", std::process::id()))
    }

    #[test]
    fn a_file_that_cannot_be_written_is_wrong_usage() {
        let path = Path::new("/no/such/folder/x.json");
        let error = Output::open(None, Some(path), Kind::Rows, 1).err().unwrap();
        assert_eq!(error.status(), 2);
        assert!(error.to_string().contains("/no/such/folder/x.json cannot be written"), "{error}");
        assert!(Output::open(Some(path), None, Kind::Rows, 1).is_err());
        assert!(Output::open(Some(path), Some(path), Kind::Rows, 1).err().unwrap().to_string().contains("both name"));
    }

    #[test]
    fn an_aborted_run_leaves_what_was_there() {
        let (old, new) = (scratch("old.json"), scratch("new.json"));
        std::fs::write(&old, "old").unwrap();
        drop(Output::open(None, Some(&old), Kind::Rows, 1).unwrap());
        drop(Output::open(None, Some(&new), Kind::Rows, 1).unwrap());
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "old");
        assert!(!new.exists());
        let all = results(vec![row("x", "bcast", 8, 1e-6)]);
        Output::open(None, Some(&old), Kind::Rows, 1).unwrap().finish(&all).unwrap();
        assert_eq!(Results::read(&old).unwrap(), all);
        std::fs::remove_file(&old).unwrap();
    }
}
