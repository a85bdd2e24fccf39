//! The examples do what their page says, through the functions behind the commands.

#![allow(clippy::expect_used, reason = "a failure here is a failed test")]

use bellwether_cue::cli::{Input, Output, def, export, vet};

/// The example files with these names.
fn input(names: &[&str]) -> Input {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/cue");
    let read = |name: &&str| {
        let text = std::fs::read_to_string(format!("{root}/{name}")).expect("the example exists");
        ((*name).to_owned(), text)
    };
    Input {
        files: names.iter().map(read).collect(),
        ..Input::default()
    }
}

const SHOP: [&str; 3] = ["shop/render.cue", "shop/schema.cue", "shop/values.cue"];

#[test]
fn the_package_is_right_and_renders() {
    let mut shop = input(&SHOP);
    assert!(vet(&shop, Some(true)).is_ok());
    shop.expressions = vec!["output.spec".to_owned()];
    let text = export(&shop, Output::Yaml).expect("it is concrete");
    assert_eq!(
        text,
        "\
replicas: 1
template:
  spec:
    containers:
      - name: shop
        image: shop:1
        ports:
          - containerPort: 80
            protocol: TCP
          - containerPort: 9090
            protocol: TCP
        env:
          - name: LEVEL
            value: info
"
    );
    shop.expressions = vec!["app.replicas".to_owned()];
    shop.tags = vec!["replicas=5".to_owned()];
    assert_eq!(export(&shop, Output::Json).expect("a number"), "5\n");
}

#[test]
fn the_definitions_of_the_package_mean_the_same_as_one_file() {
    let shop = input(&SHOP);
    let one = Input {
        files: vec![("one.cue".to_owned(), def(&shop).expect("it is valid"))],
        ..Input::default()
    };
    // Fields of one file come in another order than those of several.
    let lines = |input: &Input| {
        let text = export(input, Output::Json).expect("it is concrete");
        let lines = text
            .lines()
            .map(|line| line.trim_end_matches(',').to_owned());
        let mut lines: Vec<String> = lines.collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(&shop), lines(&one));
}

#[test]
fn data_is_checked_against_the_schema() {
    let mut values = input(&["shop/schema.cue", "values.yaml"]);
    values.schema = Some("#App".to_owned());
    assert!(vet(&values, None).is_ok());
    let mut broken = input(&["shop/schema.cue", "broken.yaml"]);
    broken.schema = Some("#App".to_owned());
    let told = vet(&broken, None).expect_err("it is broken").to_string();
    for part in [
        "error: replcias: field not allowed",
        "did you mean \"replicas\"?",
        "error: name: invalid value \"Shop\" (out of bound =~\"^[a-z][a-z0-9-]*$\")",
        "error: ports.0.port: invalid value 80800 (out of bound <65536)",
    ] {
        assert!(told.contains(part), "{part}\n---\n{told}");
    }
}

#[test]
fn mistakes_of_a_definition_are_told_with_places_reasons_and_hints() {
    let told = vet(&input(&["broken.cue"]), None)
        .expect_err("it is broken")
        .to_string();
    assert_eq!(told, include_str!("../data/broken.txt"), "\n{told}");
}
