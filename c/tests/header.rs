//! The header is what cbindgen makes of the sources. `INSTA_UPDATE=always cargo test -p stencilc-c --test header` writes it anew.

use std::path::Path;

#[test]
fn the_header_is_what_cbindgen_makes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let mut sources: Vec<_> = std::fs::read_dir(root.join("src")).unwrap().map(|file| file.unwrap().path()).collect();
    // In the order in which they are read best; others have nothing for C.
    let place =
        |path: &Path| ["status.rs", "stencil.rs", "array.rs", "call.rs"].iter().position(|name| path.ends_with(name));
    sources.retain(|path| !path.ends_with("lib.rs"));
    sources.sort_by_key(|path| (place(path).unwrap_or(usize::MAX), path.clone()));
    let builder = sources.iter().fold(cbindgen::Builder::new().with_config(config), |all, file| all.with_src(file));
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    // What Rust calls safety is for the caller to see to.
    let made = String::from_utf8(made).unwrap().replace(" * # Safety\n", " * What the caller sees to:\n");
    let path = root.join("include/stencilc.h");
    if std::env::var("INSTA_UPDATE").is_ok_and(|how| how == "always") {
        std::fs::create_dir_all(root.join("include")).unwrap();
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(kept == made, "{} is not what cbindgen makes now", path.display());
    // Each function that others link is in it.
    let text: String = sources.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let functions = text.split("extern \"C\" fn ").skip(1).filter_map(|rest| rest.split('(').next());
    let functions: Vec<&str> = functions.filter(|name| name.starts_with("stencilc_")).collect();
    assert!(functions.len() > 20, "{functions:?}");
    for function in functions {
        assert!(kept.contains(&format!("{function}(")), "{function}");
    }
}
