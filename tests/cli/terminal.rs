//! What a screen is sent: nothing that anybody wrote does something to it.

use crate::common::folder::{Folder, text};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// A name that clears the screen, renames the window, turns letters round and hides some.
const NAME: &str = "a\u{1b}[2J\u{1b}]0;pwned\u{7}\u{9b}31m\u{202e}b\u{200b}\rc";

/// What is left of an output without colours, which has to be harmless.
fn harmless(bytes: &[u8], call: &str) {
    let mut left = text(bytes);
    while let Some(at) = left.find("\u{1b}[") {
        let style = left[at + 2..].find(|c: char| !c.is_ascii_digit() && c != ';').unwrap();
        assert_eq!(left[at + 2 + style..].chars().next(), Some('m'), "{call}: {left:?}");
        left.replace_range(at..at + 3 + style, "");
    }
    let bad = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || "\u{202e}\u{200b}".contains(c);
    assert_eq!(left.find(bad), None, "{call}: {left:?}");
}

fn call(folder: &Folder, words: &[&str]) -> Command {
    let mut command = folder.command("");
    // As on a terminal: colours are told from what somebody wrote.
    command.args(words).env("CLICOLOR_FORCE", "1");
    command
}

#[test]
fn no_name_and_no_text_reaches_the_terminal_raw() {
    let folder = Folder::new();
    let file = format!("{NAME}.stn");
    fs::write(folder.path(&file), "/// Fine.\nstencil fine { in a; out b; b = a }\n").unwrap();
    let wrong = format!("wrong {NAME}.stn");
    fs::write(folder.path(&wrong), format!("stencil wrong {{ in a; out b; b = c {NAME} }}\n")).unwrap();
    let unknown = format!("unknown {NAME}.stn");
    fs::write(folder.path(&unknown), "stencil unknown { in a; out b; b = c }\n").unwrap();
    let missing = format!("missing {NAME}.stn");
    let option = format!("--{NAME}");
    let array = format!("a={NAME}.npy");
    let calls: [&[&str]; 16] = [
        &["check", &file],
        &["check", &wrong],
        &["check", &unknown],
        &["check", &missing],
        &["explain", &file],
        &["build", &file, "-o", NAME],
        &["build", &file, "--emit", "cuda"],
        &["build", &file, "--emit", "ir"],
        &["build", &file, "--stencil", NAME],
        &["run", &file, "--in", &array],
        &["run", &file, "--grid", NAME],
        &["run", &file, &option],
        &["run", &file, "--precision", NAME],
        &[NAME],
        &["snapshot", &file],
        &["list", NAME],
    ];
    for words in calls {
        for json in [false, true] {
            let mut words = words.to_vec();
            words.extend(json.then_some("--json"));
            let output = call(&folder, &words).output().unwrap();
            let called = words.join(" ");
            harmless(&output.stdout, &called);
            harmless(&output.stderr, &called);
            if json && !output.stdout.is_empty() {
                serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|error| panic!("{called:?}: {error}"));
            }
        }
    }
    // Shown it is, and JSON still says what it is.
    let shown = text(&call(&folder, &["check", &missing]).output().unwrap().stderr);
    assert!(shown.contains(r"missing a\u{1b}[2J\u{1b}]0;pwned\u{7}\u{9b}31m\u{202e}b\u{200b}\rc.stn"), "{shown}");
    let said = call(&folder, &["check", &missing, "--json"]).output().unwrap().stdout;
    let said: Value = serde_json::from_slice(&said).unwrap();
    assert!(said[0]["error"].as_str().unwrap().contains(NAME), "{said}");
}

#[test]
fn a_line_end_in_a_name_begins_no_message() {
    let folder = Folder::new();
    let output = call(&folder, &["check", "x\nerror: all is fine"]).output().unwrap();
    let said = text(&output.stderr);
    assert!(!said.lines().any(|line| line.starts_with("error: all is fine")), "{said}");
}
