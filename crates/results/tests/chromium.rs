//! The page in a real browser: what a script does there, and how it looks. The pictures are in the folder that the test names.

use causeway_results::{Axis, Document, Measurement, Run, Series, html};
use std::path::{Path, PathBuf};
use std::process::Command;

fn document() -> Document {
    let mut document = Document::new(Run { command: vec!["a test".to_owned()], ..Run::default() });
    for (device, rate) in [("kernel", 500e3), ("causeway", 900e3), ("line rate", 1_488e3)] {
        let mut series = Series::single(
            &format!("{device}/64 bytes/forwarding rate"),
            "forwarding rate",
            "frames/s",
            Measurement::measured([rate]),
        );
        series.x = Some(Axis { quantity: "offered load".to_owned(), unit: "frames/s".to_owned() });
        let point = |n: u32| {
            let load = f64::from(n) * 100e3;
            let repetitions = [0.98, 1.0, 1.01].map(|part| load.min(rate) * part);
            Measurement { x: Some(load), ..Measurement::measured(repetitions) }
        };
        series.measurements = (1..=15).map(point).collect();
        let ndr = Series::single(&format!("{device}/NDR"), "load", "frames/s", Measurement::measured([rate]));
        document.series.extend([ndr, series]);
    }
    document
}

/// What chromium makes of a page with `script` behind its own, in light or in dark; a picture too.
fn shown(folder: &Path, name: &str, script: &str, dark: bool) -> Option<String> {
    let page = html::page("Router test", &document()).expect("a page");
    let file = folder.join(format!("{name}.html"));
    std::fs::write(&file, page.replace("</body>", &format!("<script>{script}</script></body>")))
        .expect("written");
    let scheme = if dark { 0 } else { 1 };
    let run = |more: &str| {
        Command::new("chromium")
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--window-size=1200,1500",
            ])
            .args([&format!("--blink-settings=preferredColorScheme={scheme}"), more])
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .arg(format!("file://{}", file.display()))
            .output()
    };
    let dom = run("--dump-dom").ok()?;
    run(&format!("--screenshot={}", folder.join(format!("{name}.png")).display())).ok()?;
    Some(String::from_utf8_lossy(&dom.stdout).into_owned())
}

/// The text of the page's title, where a script has put what it found.
fn found(dom: &str) -> &str {
    let (_, rest) = dom.split_once("<title>").expect("a title");
    rest.split("</title>").next().expect("its end")
}

#[test]
fn the_page_works_in_a_browser_in_light_and_in_dark() {
    if Command::new("chromium").arg("--version").output().is_err() {
        return eprintln!("skipped: needs chromium");
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("chromium");
    std::fs::create_dir_all(&folder).expect("a folder");
    let ground = "document.title = getComputedStyle(document.body).backgroundColor;";
    for (name, dark, told) in [("light", false, "rgb(255, 255, 255)"), ("dark", true, "rgb(13, 17, 23)")] {
        let dom = shown(&folder, name, ground, dark).expect("chromium runs");
        assert_eq!(found(&dom), told, "{name}");
        let size = std::fs::metadata(folder.join(format!("{name}.png"))).expect("a picture").len();
        assert!(size > 10_000, "{name}: a picture of {size} bytes");
    }
    let script = "
        const click = (element) => element.dispatchEvent(new Event('click'));
        const colour = () => getComputedStyle(document.querySelector('figure text')).fill;
        const found = [document.querySelectorAll('svg .entry').length];
        click(document.querySelector('svg .entry'));
        found.push(document.querySelectorAll('circle.off').length);
        const button = document.getElementById('theme');
        const before = colour();
        click(button); click(button);
        found.push(document.documentElement.dataset.theme, before !== colour());
        const circle = document.querySelectorAll('circle')[20], box = circle.getBoundingClientRect();
        circle.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientX: box.x + 3, clientY: box.y + 3 }));
        found.push(document.getElementById('tip').textContent.split('\\n')[0]);
        const first = () => document.querySelector('table').rows[1].cells[2].textContent;
        const sorts = document.querySelectorAll('th.sorts')[2];
        click(sorts); const least = first(); click(sorts);
        found.push(least, first());
        document.title = found.join(' | ');";
    let dom = shown(&folder, "used", script, false).expect("chromium runs");
    let told = "3 | 15 | dark | true | causeway | 500000 frames/s | 1488000 frames/s";
    assert_eq!(found(&dom), told);
    eprintln!("pictures in {}", folder.display());
}
