// SPDX-License-Identifier: BSD-3-Clause
//! The events of a YAML file, one at a time: nothing is kept, so aliases have nothing to multiply, and they
//! are refused.

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};

use super::fault::{At, Fault};

/// How deep lists and maps may be nested.
const DEPTH: u32 = 32;

/// The beginning or the end of something.
pub(super) enum Step {
    /// A scalar; the second place is that of its first character, if the text stands in the file as it is.
    Scalar(String, Option<At>),
    /// A list begins.
    List,
    /// A map begins.
    Map,
    /// A list or a map ends.
    End,
    /// The document ends.
    Nothing,
}

pub(super) struct Yaml<'a> {
    parser: Parser<'a, StrInput<'a>>,
    next: Option<(Step, At)>,
    depth: u32,
}

fn place(span: &Span) -> At {
    At::Mark { line: span.start.line() as u32, column: span.start.col() as u32 + 1, plus: 0 }
}

impl<'a> Yaml<'a> {
    pub fn new(text: &'a str) -> Yaml<'a> {
        Yaml { parser: Parser::new_from_str(text), next: None, depth: 0 }
    }

    /// The next step and its place.
    pub fn step(&mut self) -> Result<(Step, At), Fault> {
        match self.next.take() {
            Some(step) => Ok(step),
            None => self.read(),
        }
    }

    /// Whether a list or a map ends here; takes that end.
    pub fn ends(&mut self) -> Result<bool, Fault> {
        let step = self.step()?;
        let ends = matches!(step.0, Step::End | Step::Nothing);
        if !ends {
            self.next = Some(step);
        }
        Ok(ends)
    }

    fn read(&mut self) -> Result<(Step, At), Fault> {
        loop {
            let Some(event) = self.parser.next_event() else { return Ok((Step::Nothing, At::START)) };
            let (event, span) = event.map_err(|error| {
                let mark = error.marker();
                let at = At::Mark { line: mark.line() as u32, column: mark.col() as u32 + 1, plus: 0 };
                Fault::new(at, error.info().to_string())
            })?;
            let at = place(&span);
            let step = match event {
                Event::Nothing | Event::StreamStart | Event::DocumentStart(_) => continue,
                Event::StreamEnd | Event::DocumentEnd => Step::Nothing,
                Event::Alias(_) => return Err(Fault::new(at, "aliases (*name) are not accepted")),
                Event::Scalar(text, style, ..) => {
                    let quote = match style {
                        ScalarStyle::Plain => Some(0),
                        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Some(1),
                        _ => None,
                    };
                    // Escapes and line breaks make it something else than what stands in the file.
                    let (start, end) = (&span.start, &span.end);
                    let verbatim = quote.filter(|quote| {
                        start.line() == end.line() && start.col() + text.chars().count() + 2 * quote == end.col()
                    });
                    let first = verbatim.map(|quote| match at {
                        At::Mark { line, column, plus } => At::Mark { line, column: column + quote as u32, plus },
                        at => at,
                    });
                    Step::Scalar(text.into_owned(), first)
                }
                Event::SequenceStart(..) | Event::MappingStart(..) => {
                    self.depth += 1;
                    if self.depth > DEPTH {
                        return Err(Fault::new(at, format!("nested more than {DEPTH} deep")));
                    }
                    if matches!(event, Event::SequenceStart(..)) { Step::List } else { Step::Map }
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    self.depth = self.depth.saturating_sub(1);
                    Step::End
                }
            };
            return Ok((step, at));
        }
    }

    /// Reads over a value.
    pub fn skip(&mut self) -> Result<(), Fault> {
        let mut open = 0u32;
        loop {
            match self.step()?.0 {
                Step::List | Step::Map => open += 1,
                Step::End => open = open.saturating_sub(1),
                Step::Nothing => return Ok(()),
                Step::Scalar(..) => {}
            }
            if open == 0 {
                return Ok(());
            }
        }
    }

    /// A scalar: its text and where that stands.
    pub fn scalar(&mut self, what: &str) -> Result<(String, Text), Fault> {
        match self.step()? {
            (Step::Scalar(text, first), at) => Ok((text, Text { at, first })),
            (_, at) => Err(Fault::new(at, format!("{what}: expected a word"))),
        }
    }

    /// Every item of a list, which `visit` has to take.
    pub fn list(&mut self, what: &str, mut visit: impl FnMut(&mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        match self.step()? {
            (Step::List, _) => {}
            (_, at) => return Err(Fault::new(at, format!("{what}: expected a list"))),
        }
        while !self.ends()? {
            visit(self)?;
        }
        Ok(())
    }

    /// Every key of a map, whose value `visit` has to take. Returns where the map begins.
    pub fn map(
        &mut self,
        what: &str,
        mut visit: impl FnMut(&mut Self, &str, At) -> Result<(), Fault>,
    ) -> Result<At, Fault> {
        let begin = match self.step()? {
            (Step::Map, at) => at,
            (_, at) => return Err(Fault::new(at, format!("{what}: expected keys with values"))),
        };
        while !self.ends()? {
            let (key, text) = self.scalar(what)?;
            visit(self, &key, text.at)?;
        }
        Ok(begin)
    }
}

/// Where a scalar stands.
#[derive(Clone, Copy)]
pub(super) struct Text {
    pub at: At,
    first: Option<At>,
}

impl Text {
    /// The place of a byte of its text, or of the whole where the text does not stand in the file as it is.
    pub fn place(self, offset: usize) -> At {
        self.first.map_or(self.at, |first| first.plus(offset))
    }
}
