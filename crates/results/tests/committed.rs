//! The results that the project shows are documents that it reads.

use causeway_results::Document;
use std::path::Path;

#[test]
fn the_documents_of_the_docs_are_read_and_name_no_folder_of_a_machine() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let files = std::fs::read_dir(folder).expect("the results").map(|entry| entry.expect("an entry").path());
    let documents = files.filter(|file| file.to_string_lossy().ends_with(".json"));
    let mut read = 0;
    for file in documents.filter(|file| !file.ends_with("results.schema.json")) {
        let text = std::fs::read_to_string(&file).expect("a file");
        Document::from_json(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        // Wherever a string begins, or the value of an option within one.
        let folder = ["\"/", "=/"].into_iter().find_map(|begin| text.split(begin).nth(1));
        assert_eq!(folder.map(|rest| rest.lines().next()), None, "{}", file.display());
        read += 1;
    }
    assert!(read >= 3, "{read} documents");
}
