use super::*;
use proptest::prelude::*;

/// Where the schema is published.
const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/results.schema.json");

fn sample() -> Document {
    let mut document = Document::new(Run { command: vec!["bench".to_owned()], ..Run::default() });
    let kernel = Series::single("kernel", "rate", "Mpps", Measurement::measured([1.0, 2.0]));
    let mut ours = Series { name: "ours".to_owned(), ..kernel.clone() };
    ours.baseline = Some("kernel".to_owned());
    document.series = vec![kernel, ours];
    document
}

fn refusal(change: impl FnOnce(&mut Document)) -> String {
    let mut document = sample();
    change(&mut document);
    document.to_json().unwrap_err().to_string()
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    let mut schema = schemars::schema_for!(Document);
    schema.insert("title".to_owned(), "Causeway results, version 1".into());
    let schema = format!("{:#}\n", schema.as_value());
    if std::env::var_os("WRITE_SCHEMA").is_some() {
        std::fs::write(SCHEMA, &schema).unwrap();
    }
    let published = std::fs::read_to_string(SCHEMA).unwrap_or_default();
    assert!(published == schema, "docs/results/results.schema.json is out of date: run `make schema`");
}

#[test]
fn another_version_is_refused_whatever_else_it_holds() {
    for version in [0_u64, 2, 1 << 40] {
        let text = format!("{{\"format\": \"{FORMAT}\", \"version\": {version}, \"rows\": []}}");
        let error = Document::from_json(&text).unwrap_err();
        assert!(matches!(error, Error::Version(v) if v == version), "{error}");
        let said = error.to_string();
        assert!(said.contains(&format!("version {version} ")) && said.contains("version 1 "), "{said}");
    }
}

#[test]
fn what_is_no_document_is_refused() {
    let other = "{\"format\": \"causeway-nic-results\", \"version\": 1}";
    assert!(matches!(Document::from_json(other).unwrap_err(), Error::Format(found) if found.contains("nic")));
    for text in ["", "[]", "{}", "{\"format\": \"causeway-results\", \"version\": 1}"] {
        assert!(matches!(Document::from_json(text).unwrap_err(), Error::Json(_)), "{text}");
    }
    let more = sample().to_json().unwrap().replacen("\"quantity\"", "\"extra\": 1, \"quantity\"", 1);
    assert!(Document::from_json(&more).unwrap_err().to_string().contains("extra"));
}

#[test]
fn contradictions_are_neither_written_nor_read() {
    let number = |value| refusal(|d| d.series[0].measurements[0].repetitions[0] = value);
    assert!(number(f64::NAN).contains("'kernel': a number is not finite"));
    assert!(number(f64::INFINITY).contains("not finite"));
    assert!(refusal(|d| d.series[0].measurements[0].repetitions.clear()).contains("no repetitions"));
    assert!(refusal(|d| d.series[1].name = "kernel".to_owned()).contains("two series 'kernel'"));
    assert!(refusal(|d| d.series[1].baseline = Some("x".to_owned())).contains("'x' is not among"));
    assert!(refusal(|d| d.series[1].unit = "ns".to_owned()).contains("another unit"));
    assert!(refusal(|d| d.series[0].measurements[0].x = Some(1.0)).contains("an x"));
    assert!(refusal(|d| d.series[0].measurements.push(Measurement::measured([1.0]))).contains("need an x"));
    let backwards = refusal(|d| {
        let measurement = |x| Measurement { x: Some(x), ..Measurement::measured([1.0]) };
        d.series[0].x = Some(Axis { quantity: "routes".to_owned(), unit: String::new() });
        d.series[0].measurements = vec![measurement(2.0), measurement(1.0)];
    });
    assert!(backwards.contains("order of x"), "{backwards}");
    let text = sample().to_json().unwrap().replace("\"baseline\": \"kernel\"", "\"baseline\": \"nobody\"");
    assert!(Document::from_json(&text).unwrap_err().to_string().contains("nobody"));
}

fn series() -> impl Strategy<Value = Series> {
    let source = prop_oneof![Just(Source::Measured), Just(Source::Modelled)];
    let repetitions = prop::collection::vec(prop::num::f64::NORMAL | prop::num::f64::ZERO, 1..5);
    let measurement = (source, repetitions, ".{0,9}");
    let measurements = prop::collection::vec(measurement, 0..5);
    (".*", ".*", any::<bool>(), measurements).prop_map(|(quantity, unit, has_x, mut measurements)| {
        if !has_x {
            measurements.truncate(1);
        }
        let measurements = measurements.into_iter().enumerate().map(|(n, (source, repetitions, note))| {
            Measurement { x: has_x.then_some(n as f64 / 3.0), source, repetitions, note }
        });
        let x = has_x.then(|| Axis { quantity: "routes".to_owned(), unit: unit.clone() });
        let measurements = measurements.collect();
        Series { name: String::new(), quantity, unit, x, baseline: None, measurements }
    })
}

proptest! {
    #[test]
    fn what_was_written_is_what_is_read(series in prop::collection::vec(series(), 0..4), words: Vec<String>) {
        let mut document = Document::new(Run { command: words, began_unix_s: u64::MAX, ..Run::default() });
        document.series = series;
        document.series.iter_mut().enumerate().for_each(|(n, series)| series.name = n.to_string());
        let text = document.to_json().unwrap();
        prop_assert_eq!(Document::from_json(&text).unwrap(), document);
    }

    #[test]
    fn no_text_makes_it_panic(text: String) {
        prop_assert!(Document::from_json(&text).is_err());
    }
}
