//! What the tables found, as one page of Markdown and one plot, in `target/benchmarks/`.
//!
//! Tables that have not run are left out. The plot shows how costs grow with the number of
//! users who left, in a panel for each chart.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use plotters::prelude::*;
use support::report::{Curve, Report, folder, number};

const REPORTS: [&str; 8] = [
    "gate_check",
    "scaling",
    "whole_signal",
    "ingest",
    "durable_transitions",
    "start_up",
    "memory",
    "component",
];

const COLORS: [RGBColor; 4] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
];
const PANEL: (u32, u32) = (480, 360);
const PANELS_IN_A_ROW: usize = 2;

fn main() -> Result<()> {
    let mut text = format!("Measured on {}.\n", machine()?);
    let mut curves = Vec::new();
    for name in REPORTS {
        let Some(report) = Report::published(name)? else {
            continue;
        };
        text.push('\n');
        text.push_str(&report.to_string());
        curves.extend(report.curves);
    }
    let folder = folder()?;
    let (page, picture) = (folder.join("summary.md"), folder.join("growth.svg"));
    if !curves.is_empty() {
        plot(&curves, &picture)?;
        text.push_str("\n![growth](growth.svg)\n");
    }
    fs::write(&page, text)?;
    println!("{}", page.display());
    Ok(())
}

/// The processor, its cores and the date.
fn machine() -> Result<String> {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("an unknown processor", |(_, model)| model.trim());
    let cores = std::thread::available_parallelism()?;
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
    Ok(format!("{model}, {cores} cores, {date}"))
}

fn plot(curves: &[Curve], file: &Path) -> Result<()> {
    let mut charts: Vec<&str> = Vec::new();
    for curve in curves {
        if !charts.contains(&curve.chart.as_str()) {
            charts.push(&curve.chart);
        }
    }
    let rows = charts.len().div_ceil(PANELS_IN_A_ROW);
    let size = (
        PANEL.0 * u32::try_from(PANELS_IN_A_ROW)?,
        PANEL.1 * u32::try_from(rows)?,
    );
    let root = SVGBackend::new(file, size).into_drawing_area();
    root.fill(&WHITE)?;
    for (panel, chart) in root
        .split_evenly((rows, PANELS_IN_A_ROW))
        .iter()
        .zip(&charts)
    {
        let lines: Vec<&Curve> = curves
            .iter()
            .filter(|curve| curve.chart == *chart)
            .collect();
        plot_chart(panel, chart, &lines)?;
    }
    root.present()?;
    Ok(())
}

type Panel<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn plot_chart(panel: &Panel<'_>, chart: &str, curves: &[&Curve]) -> Result<()> {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let most = points().map(|point| point.0).max().context("no points")?;
    let least = points().map(|point| point.0).min().context("no points")?;
    let highest = points().map(|point| point.1).fold(0.0, f64::max);
    let lowest = points().map(|point| point.1).fold(f64::MAX, f64::min);
    let unit = &curves[0].unit;
    let mut builder = ChartBuilder::on(panel);
    let mut axes = builder
        .caption(format!("{chart}, {unit}"), ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(56)
        .build_cartesian_2d(
            (least..most).log_scale(),
            // Room for the legend above.
            (lowest * 0.7..highest * 4.0).log_scale(),
        )?;
    axes.configure_mesh()
        .light_line_style(WHITE)
        .x_desc("users who left")
        .x_label_formatter(&|users| power_of_ten(*users))
        .y_label_formatter(&|cost| number(*cost))
        .draw()?;
    for (curve, color) in curves.iter().zip(COLORS.iter().cycle()) {
        let style = color.stroke_width(2);
        axes.draw_series(LineSeries::new(curve.points.iter().copied(), style).point_size(3))?
            .label(&curve.line)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    }
    axes.configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .draw()?;
    Ok(())
}

fn power_of_ten(users: u64) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    match users.checked_ilog10() {
        Some(power) if power < 10 && 10_u64.pow(power) == users => {
            format!("10{}", DIGITS[power as usize])
        }
        _ => String::new(),
    }
}
