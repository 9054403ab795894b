use super::*;
use crate::document::Run;

fn document() -> Document {
    let mut document =
        Document::new(Run { command: vec!["lab".to_owned(), "<run>".to_owned()], ..Run::default() });
    document.run.settings.insert("deviation: trials".to_owned(), "100 ms & not 60 s".to_owned());
    let axis = |quantity: &str| Axis { quantity: quantity.to_owned(), unit: "frames/s".to_owned() };
    for (device, factor) in [("kernel", 1.0), ("causeway", 2.0)] {
        let mut curve = Series::single(
            &format!("{device}/64 bytes/forwarding rate"),
            "forwarding rate",
            "frames/s",
            Measurement::measured([100.0 * factor, 110.0 * factor]),
        );
        curve.x = Some(axis("offered load"));
        curve.measurements[0].x = Some(200.0);
        let mut second = curve.measurements[0].clone();
        second.x = Some(400.0);
        curve.measurements.push(second);
        let mut trace = curve.clone();
        trace.name = format!("{device}/search 1");
        trace.x = Some(axis("trial"));
        let mut ndr =
            Series::single(&format!("{device}/NDR"), "load", "frames/s", Measurement::measured([factor; 3]));
        ndr.measurements[0].note = "limited by </script> the tester".to_owned();
        ndr.baseline = (device != "kernel").then(|| "kernel/NDR".to_owned());
        document.series.extend([ndr, curve, trace]);
    }
    document
}

#[test]
fn the_page_stands_alone_and_has_all() {
    let page = page("Router & tester", &document()).expect("a page");
    assert!(page.contains("<h1>Router &amp; tester</h1>") && page.contains("lab &lt;run&gt;"));
    for (word, times) in
        [("<svg", 2), ("</svg>", 2), ("<details>", 2), ("<h2>64 bytes/forwarding rate</h2>", 1)]
    {
        assert_eq!(page.matches(word).count(), times, "{word}");
    }
    assert!(page.contains("<td class=\"n\">2.00 (2.0000 to 2.0000)</td>"), "the ratio to the baseline");
    assert!(page.contains("100 ms &amp; not 60 s"));
    for loaded in ["src=", "href=", "@import", "url("] {
        assert!(!page.contains(loaded), "{loaded} loads something");
    }
    assert_eq!(page.matches("</script>").count(), 4, "nothing in the document ends its element");
}

#[test]
fn the_document_is_in_the_page() {
    let page = page("t", &document()).expect("a page");
    let (_, rest) = page.split_once("id=\"results\">\n").expect("the element");
    let (json, _) = rest.split_once("</script>").expect("its end");
    assert_eq!(Document::from_json(json).expect("a document"), document());
}

#[test]
fn elements_are_closed_in_order() {
    let page = page("t", &document()).expect("a page");
    let mut open = Vec::new();
    for part in page.split('<').skip(1).filter(|part| !part.starts_with(['!', '?'])) {
        let name: String = part.chars().take_while(|c| c.is_alphanumeric() || *c == '/').collect();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name)),
            None if part.split('>').next().is_some_and(|tag| tag.ends_with('/')) || name == "meta" => {}
            None => open.push(name.trim_end_matches('/').to_owned()),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_document_without_series_is_a_page() {
    assert!(page("t", &Document::new(Run::default())).is_ok());
}

/// Each point has its text, in the order in which the points are drawn.
#[test]
fn points_have_what_a_pointer_shows() {
    let page = page("t", &document()).expect("a page");
    let (_, figure) = page.split_once("<figure>").expect("a figure");
    let (figure, _) = figure.split_once("</figure>").expect("its end");
    assert_eq!(figure.matches("<circle").count(), 4);
    let (_, json) = figure.split_once("application/json\">").expect("the points");
    let lines: serde_json::Value =
        serde_json::from_str(json.split("</script>").next().expect("all")).expect("JSON");
    assert_eq!(lines[1]["name"], "causeway");
    assert_eq!(lines[1]["points"][1], "offered load 400.0 frames/s\n210.0 frames/s (200.0 to 220.0)");
}

#[test]
fn what_is_inside_is_folded_and_results_by_length_are_in_the_table() {
    let mut document = document();
    for series in &mut document.series {
        series.baseline = None;
        if let Some(rest) = series.name.strip_prefix("kernel/64") {
            series.name = format!("idle/inside kernel, 64{rest}");
        }
        if series.name == "causeway/64 bytes/forwarding rate" {
            series.name = "causeway/rate".to_owned();
            series.x = Some(Axis { quantity: "frame length".to_owned(), unit: "bytes".to_owned() });
        }
    }
    let page = page("t", &document).expect("a page");
    let (head, rest) = page.split_once("<h2>Inside, while it was loaded</h2>").expect("a part");
    assert!(rest.contains("<summary>inside kernel, 64 bytes/forwarding rate</summary>"));
    assert_eq!(head.matches("<td>causeway/rate</td>").count(), 2, "a row for each length");
    assert_eq!(head.matches("<figure>").count(), 1, "and a chart");
}

#[test]
fn frames_a_second_are_told_as_a_part_of_the_line_rate_and_in_bits() {
    let mut document = Document::new(Run::default());
    let of = |name: &str, unit: &str, value: f64| {
        let mut series = Series::single(name, "load", unit, Measurement::measured([value]));
        series.x = Some(Axis { quantity: "frame length".to_owned(), unit: "bytes".to_owned() });
        series.measurements[0].x = Some(64.0);
        series
    };
    document.series.extend([
        of("kernel/NDR", "frames/s", 744_048.0),
        of("line rate/NDR", "frames/s", 1_488_095.0),
        of("kernel/PDR", "frames/s", 1e6),
        of("kernel/buffer time", "us", 50.0),
    ]);
    let page = page("t", &document).expect("a page");
    let (told, all) = page.split_once("<summary>All measurements").expect("two tables");
    let row = |name: &str| {
        let row = told.split("<tr>").find(|row| row.starts_with(&format!("<td>{name}</td>"))).expect("a row");
        let cells: Vec<&str> =
            row.split("<td").map(|cell| cell.split(['>', '<']).nth(1).unwrap_or("")).collect();
        cells[6..9].iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>()
    };
    // With 20 bytes of preamble and gap, half of a gigabit; 64 bytes of 84 are the frame's.
    assert_eq!(row("kernel/NDR"), ["50.0", "0.5000", "0.3810"]);
    assert_eq!(row("line rate/NDR"), ["100.0", "1.0000", "0.7619"]);
    assert_eq!(row("kernel/PDR"), ["", "0.6720", "0.5120"], "its line rate is not known");
    assert_eq!(row("kernel/buffer time"), ["", "", ""]);
    assert!(told.contains("<th>% of line rate</th><th>Gbit/s, L1</th><th>Gbit/s, L2</th>"));
    assert!(!all.contains("Gbit/s"), "the table of everything has no more than the document");
}

#[test]
fn what_stands_beside_a_load_is_in_a_table_of_its_own() {
    let mut document = document();
    for (what, name) in
        [(UPPER, "kernel/NDR, upper bound"), (CONDITIONAL, "kernel/NDR, conditional throughput")]
    {
        let mut series = document.series[0].clone();
        (series.name, series.quantity) = (name.to_owned(), what.to_owned());
        document.series.push(series);
    }
    let why = ("not measured: delay of kernel".to_owned(), "it has <no> PDR".to_owned());
    document.run.settings.extend([why]);
    let page = page("t", &document).expect("a page");
    let (head, rest) = page.split_once("<h2>Beside the loads that were searched</h2>").expect("a part");
    let part = rest.split("<h2>").next().expect("its text");
    for name in ["kernel/NDR, upper bound", "kernel/NDR, conditional throughput"] {
        assert!(part.contains(&format!("<td>{name}</td>")) && !head.contains(name), "{name}");
    }
    assert!(head.contains("<p>not measured: delay of kernel: it has &lt;no&gt; PDR.</p>"), "{head}");
}

#[test]
fn parts_of_a_whole_are_stacked_without_those_that_are_nothing() {
    let mut document = document();
    let mut parts: Vec<Series> = document.series.iter().filter(|one| one.x.is_some()).cloned().collect();
    parts.truncate(1);
    parts.extend([parts[0].clone(), parts[0].clone()]);
    for (name, part) in ["IP", "idle", "locks"].into_iter().zip(&mut parts) {
        part.name = format!("{name}/inside kernel: processor time");
        part.quantity = "part of processor time".to_owned();
    }
    parts[2].measurements.iter_mut().for_each(|one| one.repetitions = vec![0.0]);
    document.series = parts;
    let page = page("t", &document).expect("a page");
    assert_eq!(page.matches("<polygon").count(), 2);
    assert!(page.contains("part of processor time (frames/s), measured"), "its axis says it");
}

#[test]
fn frames_that_came_otherwise_than_sent_are_told_of_where_there_are_any() {
    let part = |counts: [f64; 2]| {
        let mut document = document();
        let mut series = document.series[1].clone();
        series.name = "kernel/64 bytes/duplicated frames".to_owned();
        series.quantity = IRREGULAR[0].to_owned();
        series.measurements.iter_mut().zip(counts).for_each(|(one, count)| one.repetitions = vec![count]);
        let mut varied = document.series[1].clone();
        varied.name = "kernel/64 bytes/PDV".to_owned();
        varied.quantity = VARIATION.to_owned();
        document.series.extend([series, varied]);
        let page = page("t", &document).expect("a page");
        assert!(page.contains("<details><summary>64 bytes/PDV</summary>"), "folded");
        let (_, rest) = page.split_once("<h2>Frames that came otherwise").expect("a part");
        rest.split("<h2>").next().expect("its text").to_owned()
    };
    let none = part([0.0, 0.0]);
    assert!(none.contains("no duplicated frames, no reordered") && !none.contains("<table>"), "{none}");
    let some = part([0.0, 3.0]);
    assert_eq!(some.matches("<td>kernel/64 bytes/duplicated frames</td>").count(), 1, "{some}");
    assert!(some.contains("400.0 frames/s") && !some.contains("<svg"), "{some}");
}

/// What of a page has a name, a line each: headings, what folds, heads and first cells of tables, lines of charts.
fn outline(page: &str) -> String {
    let mut found = String::new();
    let mut heads: Vec<&str> = Vec::new();
    let mut first = false;
    for part in page.split('<') {
        let (tag, said) = part.split_once('>').unwrap_or((part, ""));
        let name = tag.split(' ').next().unwrap_or_default();
        let mut line = |text: &str| found += &format!("{text}\n");
        match name {
            "h1" | "h2" | "summary" => line(&format!("{name} {said}")),
            "tr" => first = true,
            "th" => heads.push(said),
            "td" => {
                match &heads[..] {
                    // A row of what the numbers depend on.
                    [what] => line(&format!("  {what}")),
                    [] if first => line(&format!("  {said}")),
                    _ => {}
                }
                heads.clear();
                first = false;
            }
            "/tr" if heads.len() > 1 => line(&format!(" table {}", std::mem::take(&mut heads).join(" | "))),
            "script" if tag.contains("application/json") && !tag.contains("id=") => {
                let lines: serde_json::Value = serde_json::from_str(said).expect("lines of a chart");
                for one in lines.as_array().expect("a list") {
                    let points = one["points"].as_array().map_or(0, Vec::len);
                    line(&format!("  line {}: {points} points", one["name"].as_str().expect("a name")));
                }
            }
            _ => {}
        }
    }
    found
}

/// As the schema of the document is held, so is what its page has.
#[test]
fn the_page_of_a_known_document_has_what_it_had() {
    let document = Document::from_json(include_str!("outline.json")).expect("a document");
    let found = outline(&page("Router test", &document).expect("a page"));
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/html/outline.txt");
    if std::env::var_os("WRITE_OUTLINE").is_some() {
        std::fs::write(file, &found).expect("written");
    }
    let kept = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        kept == found,
        "src/html/outline.txt is not of this page; WRITE_OUTLINE=1 writes it anew:\n{found}"
    );
}

/// A paper's numbers lie on the chart of what they are numbers of, as rings; it is then not folded away, and one point is enough.
#[test]
fn numbers_of_a_paper_are_points_on_the_chart() {
    let mut document = document();
    let mut curve = document.series[1].clone();
    curve.name = "idle/inside kernel".to_owned();
    curve.measurements.truncate(1);
    let paper = Series { name: format!("{PAPER}{}", curve.name), ..curve.clone() };
    document.series = vec![curve];
    let folded = page("t", &document).expect("a page");
    assert!(folded.contains("<summary>inside kernel</summary>"));
    document.series.push(paper);
    let page = page("t", &document).expect("a page");
    assert!(page.contains("<h2>inside kernel</h2>") && !page.contains("<summary>inside kernel</summary>"));
    let (_, figure) = page.split_once("<figure>").expect("a figure");
    let (figure, _) = figure.split_once("</figure>").expect("its end");
    // One is the legend's, which the script leaves out.
    assert_eq!((figure.matches("r=\"5\"").count(), figure.matches("r=\"3\"").count()), (2, 1));
    assert!(
        figure.contains("\"joined\":false") && figure.contains("\"name\":\"the paper: idle\""),
        "{figure}"
    );
}
