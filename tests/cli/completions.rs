//! `stencilc completions`.

use crate::common::folder::Folder;
use std::fs;
use std::process::Command;

#[test]
fn every_shell_gets_a_script_that_knows_the_subcommands() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = folder.done(&format!("completions {shell}"));
        // Fish writes options without their dashes.
        for word in ["snapshot", "report", "doctor", "precision"] {
            assert!(script.contains(word), "{shell}: no {word}");
        }
    }
    let output = folder.run("completions bsh");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("a similar value exists: 'bash'"));
}

/// What bash offers for a line, by the script itself.
fn offered(folder: &Folder, line: &str) -> String {
    fs::write(folder.path("stencilc.bash"), folder.done("completions bash")).unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    let (last, previous) = (words[words.len() - 1], words[words.len() - 2]);
    let program = format!(
        "source stencilc.bash; COMP_WORDS=({}); COMP_CWORD={}; _stencilc stencilc '{last}' {previous}; \
         echo \"${{COMPREPLY[*]}}\"; complete -p stencilc",
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        words.len() - 1
    );
    let output = Command::new("bash").args(["--norc", "-c", &program]).current_dir(folder.path("")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn bash_completes() {
    let folder = Folder::new();
    let first = |line: &str| offered(&folder, line).lines().next().unwrap_or_default().to_owned();
    assert_eq!(first("stencilc sn"), "snapshot");
    assert_eq!(first("stencilc verify laplap --pre"), "--precision");
    assert_eq!(first("stencilc build laplap --access zloop-"), "zloop-sliced");
    // Where the script offers nothing, bash completes file names.
    assert_eq!(first("stencilc check two"), "");
    assert!(offered(&folder, "stencilc check two").contains("-o default"));
}
