//! The header is what cbindgen makes of the sources. `INSTA_UPDATE=always cargo test -p stencilc-c --test header` writes it anew.

use std::path::Path;
use std::process::Command;

/// What cbindgen makes, in a workspace and a folder of its own.
fn made(root: &Path) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["run", "--quiet", "--locked", "--manifest-path"])
        .arg(root.join("header/Cargo.toml"))
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("header"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_header_is_what_cbindgen_makes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (made, path) = (made(root), root.join("include/stencilc.h"));
    if std::env::var("INSTA_UPDATE").is_ok_and(|how| how == "always") {
        std::fs::create_dir_all(root.join("include")).unwrap();
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(kept == made, "{} is not what cbindgen makes now", path.display());
    // Each function that others link is in it.
    let sources = std::fs::read_dir(root.join("src")).unwrap();
    let text: String = sources.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    let functions = text.split("extern \"C\" fn ").skip(1).filter_map(|rest| rest.split('(').next());
    let functions: Vec<&str> = functions.filter(|name| name.starts_with("stencilc_")).collect();
    assert!(functions.len() > 20, "{functions:?}");
    for function in functions {
        assert!(kept.contains(&format!("{function}(")), "{function}");
    }
}
