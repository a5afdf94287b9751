//! `stencilc cmake`: the files that CMake's `find_package(stencilc)` looks for.

use crate::build::{will_write, write};
use crate::terminal;
use serde_json::json;
use std::path::{Path, PathBuf};
use stencilc_runtime::files::trust;
use stencilc_runtime::{Error, Result, nvrtc};

/// The package, and whether a version of it suits.
const FILES: [(&str, &str); 2] = [
    ("stencilcConfig.cmake", include_str!("cmake/stencilcConfig.cmake")),
    ("stencilcConfigVersion.cmake", include_str!("cmake/stencilcConfigVersion.cmake")),
];

/// Arguments of `cmake`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    cmake -S . -B build -Dstencilc_DIR=\"$(stencilc cmake)\"    with find_package(stencilc REQUIRED) in CMakeLists.txt")]
pub struct Args {
    /// The folder for the files; one that stencilc keeps, if not given
    #[arg(short, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    output: Option<PathBuf>,
}

/// Writes the files, and prints their folder, which CMake takes as `stencilc_DIR`.
///
/// # Errors
/// They cannot be written.
pub fn cmake(args: &Args, json: bool) -> Result<()> {
    let kept = || -> Result<PathBuf> {
        let home = nvrtc::home().ok_or_else(|| {
            Error::input(
                "there is no folder that stencilc keeps: none of STENCILC_HOME, XDG_CACHE_HOME and HOME is set",
            )
            .help("give a folder: -o DIR")
        })?;
        let folder = home.join(format!("cmake-{}", env!("CARGO_PKG_VERSION")));
        // CMake executes what is in it, so nobody else may have put anything there.
        let failed = |error| Error::input(format!("the folder `{}` cannot be made: {error}", folder.display()));
        trust::make_folder(&folder).map_err(failed)?;
        trust::check_folder(&folder, &home)
    };
    let folder = args.output.clone().map_or_else(kept, Ok)?;
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    let program = std::env::current_exe().ok();
    let paths = FILES.map(|(name, _)| will_write("-o", &folder, name));
    for (path, (_, text)) in paths.into_iter().zip(FILES) {
        let text = text.replace("@program_folder@", &hint(program.as_deref()));
        write(&path?, text.replace("@version@", env!("CARGO_PKG_VERSION")).as_bytes())?;
    }
    match json {
        true => terminal::json(&json!({ "folder": folder })),
        false => terminal::print(&format!("{}\n", folder.display())),
    }
}

/// Where this program lies, as CMake takes a text that means nothing to it; nothing if another one runs it, as Python does.
fn hint(program: Option<&Path>) -> String {
    let own = program.filter(|path| path.file_name().is_some_and(|name| name == "stencilc"));
    match own.and_then(|path| path.parent()?.to_str()) {
        Some(folder) if !folder.contains("]==]") && !folder.ends_with(']') => format!("[==[{folder}]==]"),
        _ => "\"\"".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::hint;
    use std::path::Path;

    #[test]
    fn no_name_of_a_folder_is_code() {
        let of = |path: &str| hint(Some(Path::new(path)));
        assert_eq!(of("/usr/bin/stencilc"), "[==[/usr/bin]==]");
        assert_eq!(of("/a ${b} \"c\"/stencilc"), "[==[/a ${b} \"c\"]==]");
        for other in ["/usr/bin/python3", "/a]==]x/stencilc", "/a]/stencilc"] {
            assert_eq!(of(other), "\"\"");
        }
    }
}
