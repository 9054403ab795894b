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
    assert_eq!(page.matches("</script>").count(), 1, "nothing in the document ends its element");
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
