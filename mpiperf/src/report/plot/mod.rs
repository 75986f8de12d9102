// SPDX-License-Identifier: BSD-3-Clause
//! Pictures: times and ratios with confidence bands, as SVG or PNG.

mod axis;
mod draw;
mod picture;

use std::path::Path;
use std::sync::Once;

use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

use super::Results;
use super::output::write_file;
use crate::error::{Error, Result};
pub use picture::{Curve, Panel, Picture, Point};

/// The kinds of files that can be drawn to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Scalable.
    Svg,
    /// Pixels, twice as many as units.
    Png,
}

impl Kind {
    /// By the ending of the file's name.
    pub fn of(path: &Path) -> Result<Kind> {
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_lowercase();
        match ending.as_str() {
            "svg" => Ok(Kind::Svg),
            "png" => Ok(Kind::Png),
            _ => Err(Error::usage(format!("{}: pictures end with .svg or .png", path.display()))),
        }
    }
}

/// Draws `results` to the file `path`.
pub fn plot(results: &Results, title: Option<&str>, path: &Path) -> Result<()> {
    save(&Picture::new(results), title, path)
}

/// Draws a picture to the file `path`.
pub fn save(picture: &Picture, title: Option<&str>, path: &Path) -> Result<()> {
    let kind = Kind::of(path)?;
    if picture.is_empty() {
        return Err(Error::usage("there is nothing to draw: no case has a valid call"));
    }
    fonts()?;
    let (width, height) = draw::size(picture, title.is_some());
    match kind {
        Kind::Svg => {
            let mut text = String::new();
            {
                let root = SVGBackend::with_string(&mut text, (width, height)).into_drawing_area();
                draw::draw(&root, picture, title, 1).and_then(|()| root.present()).map_err(failed)?;
            }
            write_file(path, text.as_bytes())
        }
        Kind::Png => {
            let (width, height) = (2 * width, 2 * height);
            let mut pixels = vec![0; width as usize * height as usize * RGB];
            {
                let root = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
                draw::draw(&root, picture, title, 2).and_then(|()| root.present()).map_err(failed)?;
            }
            write_file(path, &encoded(&pixels, width, height).map_err(failed)?)
        }
    }
}

/// Bytes of a pixel: red, green, blue.
const RGB: usize = 3;

/// The PNG file of pixels that lie row by row.
fn encoded(pixels: &[u8], width: u32, height: u32) -> std::result::Result<Vec<u8>, png::EncodingError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(file)
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Measure(format!("drawing failed: {error}"))
}

/// The program brings its font with it: machines for computing often have none.
fn fonts() -> Result<()> {
    static ONCE: Once = Once::new();
    let mut good = true;
    ONCE.call_once(|| {
        good &= register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular()).is_ok();
        good &= register_font("sans-serif", FontStyle::Bold, dejavu::sans::bold()).is_ok();
    });
    if good { Ok(()) } else { Err(Error::Measure("the built-in font cannot be read".into())) }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::{empty, results, row};
    use super::*;

    fn some() -> Results {
        let sizes = (3..20).map(|e| 1usize << e);
        let rows = sizes.flat_map(|n| {
            let time = 1e-6 + n as f64 * 1e-10;
            [row("Open MPI", "bcast", n, time), row("MPICH", "bcast", n, 1.4 * time)]
        });
        results(rows.collect())
    }

    fn drawn(results: &Results, name: &str) -> Vec<u8> {
        let path = std::env::temp_dir().join(format!("mpiperf-{}-{name}", std::process::id()));
        plot(results, Some("A title & more"), &path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        bytes
    }

    #[test]
    fn svg() {
        let text = String::from_utf8(drawn(&some(), "x.svg")).unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        for what in ["Open MPI", "MPICH", "bcast", "4 KiB", "10 µs", "A title &amp; more"] {
            assert!(text.contains(what), "no {what}");
        }
    }

    #[test]
    fn png() {
        let bytes = drawn(&some(), "x.png");
        let mut reader = png::Decoder::new(std::io::Cursor::new(&bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let frame = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((frame.color_type, frame.bit_depth), (png::ColorType::Rgb, png::BitDepth::Eight));
        let has = |wanted: fn(u8) -> bool| pixels.chunks(RGB).any(|pixel| pixel.iter().all(|&part| wanted(part)));
        assert!(has(|part| part == 255), "no paper");
        assert!(has(|part| part < 64), "no ink");
        assert!(frame.width > 1000 && frame.height > 400, "{} x {}", frame.width, frame.height);
    }

    #[test]
    fn wrong_names_and_nothing_to_draw() {
        let error = |results: &Results, path: &str| plot(results, None, Path::new(path)).unwrap_err().to_string();
        assert!(error(&some(), "x.pdf").contains(".svg or .png"));
        assert!(error(&some(), "/no/such/folder/x.png").contains("cannot be written"));
        assert!(error(&results(vec![empty("x", "bcast", 8)]), "x.svg").contains("no case has a valid call"));
    }
}
