// SPDX-License-Identifier: BSD-3-Clause
//! Draws a picture on any of the drawing library's backends.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::{Axis, powers, ratios, times};
use super::picture::{Curve, Panel, Picture};
use crate::report::units::{bytes, time};

type Area<DB> = DrawingArea<DB, Shift>;
type Drawn<DB> = Result<(), DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;

// Sizes in units; a PNG has `scale` pixels for each.
const PANEL: u32 = 560;
const LATENCY: u32 = 330;
const RATIO: u32 = 200;
const TITLE: u32 = 36;
const LEGEND: u32 = 24;
const FOOTER: u32 = 26;
const COLUMNS: usize = 3;

/// Colours that colour-blind readers can tell apart (Okabe and Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(90, 90, 90),
];
const INK: RGBColor = RGBColor(40, 40, 40);
const GRID: RGBColor = RGBColor(222, 222, 222);

fn colour(name: usize) -> RGBColor {
    COLOURS[name % COLOURS.len()]
}

fn columns(picture: &Picture) -> usize {
    match picture.panels.len() {
        4 => 2,
        n => n.clamp(1, COLUMNS),
    }
}

fn panel_height(picture: &Picture) -> u32 {
    LATENCY + if picture.panels.iter().any(|p| !p.ratios.is_empty()) { RATIO } else { 0 }
}

fn legend_lines(picture: &Picture) -> Vec<Vec<usize>> {
    let width = columns(picture) as u32 * PANEL - 30;
    let mut lines: Vec<Vec<usize>> = vec![vec![]];
    let mut used = 0;
    for (i, name) in picture.names.iter().enumerate() {
        let wide = entry(name);
        if used + wide > width && used > 0 {
            lines.push(vec![]);
            used = 0;
        }
        used += wide;
        if let Some(line) = lines.last_mut() {
            line.push(i);
        }
    }
    lines
}

/// Width of a name in the legend, estimated from the font's mean width.
fn entry(name: &str) -> u32 {
    56 + name.chars().count() as u32 * 8
}

/// Width and height in units.
pub fn size(picture: &Picture, title: bool) -> (u32, u32) {
    let columns = columns(picture);
    let rows = picture.panels.len().div_ceil(columns) as u32;
    let head = if title { TITLE } else { 8 } + legend_lines(picture).len() as u32 * LEGEND;
    (columns as u32 * PANEL, head + rows * panel_height(picture) + FOOTER)
}

fn text(size: u32, scale: u32) -> TextStyle<'static> {
    ("sans-serif", (size * scale) as i32).into_font().color(&INK)
}

/// Draws everything; `scale`: pixels for each unit.
pub fn draw<DB: DrawingBackend>(root: &Area<DB>, picture: &Picture, title: Option<&str>, scale: u32) -> Drawn<DB> {
    root.fill(&WHITE)?;
    let (width, height) = root.dim_in_pixel();
    let centered = |size| text(size, scale).pos(Pos::new(HPos::Center, VPos::Center));
    let mut top = 8 * scale;
    if let Some(title) = title {
        root.draw(&Text::new(title.to_owned(), ((width / 2) as i32, (TITLE * scale / 2) as i32), centered(19)))?;
        top = TITLE * scale;
    }
    for line in legend_lines(picture) {
        legend(root, picture, &line, top, scale)?;
        top += LEGEND * scale;
    }
    let bottom = height - FOOTER * scale;
    let foot = ((width / 2) as i32, (height - FOOTER * scale / 2) as i32);
    root.draw(&Text::new(picture.footer.clone(), foot, centered(11)))?;
    let columns = columns(picture);
    let panels = root.clone().shrink((0, top), (width, bottom - top));
    let cells = panels.split_evenly((picture.panels.len().div_ceil(columns), columns));
    for (cell, one) in cells.iter().zip(&picture.panels) {
        panel(cell, one, scale)?;
    }
    Ok(())
}

fn legend<DB: DrawingBackend>(root: &Area<DB>, picture: &Picture, line: &[usize], top: u32, scale: u32) -> Drawn<DB> {
    let (width, _) = root.dim_in_pixel();
    let total: u32 = line.iter().map(|i| entry(&picture.names[*i])).sum();
    let mut x = (width.saturating_sub(total * scale) / 2) as i32;
    let y = (top + LEGEND * scale / 2) as i32;
    let unit = scale as i32;
    for i in line {
        let ends = vec![(x, y), (x + 28 * unit, y)];
        root.draw(&PathElement::new(ends, colour(*i).stroke_width(2 * scale)))?;
        marker(root, (x + 14 * unit, y), *i, scale)?;
        let style = text(14, scale).pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&Text::new(picture.names[*i].clone(), (x + 36 * unit, y), style))?;
        x += (entry(&picture.names[*i]) * scale) as i32;
    }
    Ok(())
}

/// A marker whose shape, too, tells the curve.
fn marker<DB: DrawingBackend>(area: &Area<DB>, at: (i32, i32), name: usize, scale: u32) -> Drawn<DB> {
    let (fill, r, (x, y)) = (colour(name).filled(), 4 * scale as i32, at);
    match name % 4 {
        0 => area.draw(&Circle::new(at, r, fill)),
        1 => area.draw(&Rectangle::new([(x - r + 1, y - r + 1), (x + r - 1, y + r - 1)], fill)),
        2 => area.draw(&Polygon::new(vec![(x, y - r - 1), (x + r, y + r - 1), (x - r, y + r - 1)], fill)),
        _ => area.draw(&Polygon::new(vec![(x, y - r - 1), (x + r + 1, y), (x, y + r + 1), (x - r - 1, y)], fill)),
    }
}

fn panel<DB: DrawingBackend>(area: &Area<DB>, panel: &Panel, scale: u32) -> Drawn<DB> {
    let xs = panel.times.iter().chain(&panel.ratios).flat_map(|c| c.points.iter().map(|p| p.x));
    let x = powers(xs, 8);
    let (_, height) = area.dim_in_pixel();
    let (upper, lower) = if panel.ratios.is_empty() {
        (area.clone(), None)
    } else {
        let (upper, lower) = area.split_vertically(height - RATIO * scale);
        (upper, Some(lower))
    };
    let missing = match panel.missing {
        0 => String::new(),
        1 => " (1 case without a valid call)".to_owned(),
        n => format!(" ({n} cases without a valid call)"),
    };
    let y = times(values(&panel.times));
    let heading = format!("{}{missing}", panel.title);
    let y_label = |v: &f64| short(&time(10f64.powf(*v)));
    let described = lower.is_none();
    chart(&upper, panel, Some(&heading), ("time", &y_label), (&x, &y), (&panel.times, described), scale)?;
    if let Some(lower) = lower {
        let y = ratios(values(&panel.ratios));
        let fine = y.span.end - y.span.start < 0.05;
        let y_label = move |v: &f64| {
            let ratio = 10f64.powf(*v);
            if fine {
                format!("{ratio:.3}")
            } else {
                format!("{:.3}", ratio).trim_end_matches('0').trim_end_matches('.').to_owned()
            }
        };
        let what = panel.base.as_ref().map_or("ratio".to_owned(), |base| format!("time / {base}"));
        chart(&lower, panel, None, (&what, &y_label), (&x, &y), (&panel.ratios, true), scale)?;
    }
    Ok(())
}

fn values(curves: &[Curve]) -> impl Iterator<Item = f64> + Clone + '_ {
    let points = curves.iter().flat_map(|c| &c.points);
    points.flat_map(|p| {
        // Wide bands must not press the curves flat.
        let (low, high) = p.band.unwrap_or((p.y, p.y));
        [p.y, low.max(p.y / 3.0), high.min(p.y * 3.0)]
    })
}

/// `10.00 µs` as `10 µs`.
fn short(text: &str) -> String {
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text.to_owned(),
    }
}

fn chart<DB: DrawingBackend>(
    area: &Area<DB>,
    panel: &Panel,
    heading: Option<&str>,
    (y_name, y_label): (&str, &dyn Fn(&f64) -> String),
    (x, y): (&Axis, &Axis),
    (curves, described): (&[Curve], bool),
    scale: u32,
) -> Drawn<DB> {
    let mut builder = ChartBuilder::on(area);
    builder.margin(8 * scale).margin_right(22 * scale);
    builder.x_label_area_size(if described { 44 } else { 22 } * scale).y_label_area_size(70 * scale);
    if let Some(heading) = heading {
        builder.caption(heading, text(15, scale));
    }
    let mut chart = builder.build_cartesian_2d(x.clone(), y.clone())?;
    let x_label = |v: &f64| {
        let n = 10f64.powf(*v).round() as usize;
        if panel.sized { bytes(n) } else { n.to_string() }
    };
    let mut mesh = chart.configure_mesh();
    mesh.bold_line_style(GRID.stroke_width(scale)).light_line_style(TRANSPARENT).axis_style(INK.stroke_width(scale));
    mesh.x_label_formatter(&x_label).y_label_formatter(y_label).label_style(text(12, scale));
    mesh.axis_desc_style(text(13, scale)).y_desc(y_name);
    if described {
        mesh.x_desc(if panel.sized { "message size" } else { "processes" });
    }
    mesh.draw()?;
    if y.span.contains(&0.0) && heading.is_none() {
        // Ratio 1.
        let ends = [(x.span.start, 0.0), (x.span.end, 0.0)];
        chart.draw_series(LineSeries::new(ends, INK.mix(0.7).stroke_width(scale)))?;
    }
    let log = |v: f64| v.max(f64::MIN_POSITIVE).log10();
    let held = |v: f64| log(v).clamp(y.span.start, y.span.end);
    // All bands first: none lies over a line.
    for curve in curves {
        let band: Vec<_> = curve.points.iter().filter_map(|p| Some((log(p.x), p.band?))).collect();
        let under = band.iter().rev().map(|(x, (low, _))| (*x, held(*low)));
        let outline: Vec<_> = band.iter().map(|(x, (_, high))| (*x, held(*high))).chain(under).collect();
        if band.len() > 1 {
            chart.draw_series([Polygon::new(outline, colour(curve.name).mix(0.22))])?;
        } else if let [(x, (low, high))] = band[..] {
            let bar = [(x, held(low)), (x, held(high))];
            chart.draw_series(LineSeries::new(bar, colour(curve.name).mix(0.5).stroke_width(4 * scale)))?;
        }
    }
    for curve in curves {
        let line = curve.points.iter().map(|p| (log(p.x), log(p.y)));
        chart.draw_series(LineSeries::new(line.clone(), colour(curve.name).stroke_width(2 * scale)))?;
        for point in line {
            let at = chart.backend_coord(&point);
            let base = chart.plotting_area().strip_coord_spec();
            let (left, top) = base.get_base_pixel();
            marker(&base, (at.0 - left, at.1 - top), curve.name, scale)?;
        }
    }
    Ok(())
}
