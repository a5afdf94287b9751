//! The Python package: built as a wheel, installed into an environment of its own, and tested there; `docs/python.md` is one of the tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Packages that the tests need, beside what the wheel itself brings.
const PACKAGES: [&str; 5] = ["maturin>=1.16,<2", "numpy", "pytest", "mypy", "xarray"];

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// What a command printed, if it went well.
fn done(command: &mut Command) -> String {
    let output = run(command);
    let [out, err] = [&output.stdout, &output.stderr].map(|own| String::from_utf8_lossy(own).into_owned());
    assert!(output.status.success(), "{command:?}\n{out}\n{err}");
    out
}

/// An environment of Python with these packages; or what is missing for one.
fn environment(folder: &Path) -> Result<PathBuf, &'static str> {
    let python = folder.join("bin/python");
    match Command::new("python3").args(["-m", "venv"]).arg(folder).output() {
        Ok(output) if output.status.success() => {}
        _ => return Err("no python3 with venv (python3-venv)"),
    }
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    match run(Command::new(&python).args(install).args(PACKAGES)) {
        output if output.status.success() => Ok(python),
        _ => Err("no packages for the tests of the Python package: they could not be fetched"),
    }
}

#[test]
fn the_package_is_built_installed_and_tested() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let python = match environment(&folder.path().join("environment")) {
        Ok(python) => python,
        Err(missing) => {
            println!("skipped: {missing}");
            return;
        }
    };
    // In the profile and the folder of the other tests, so that little is compiled again.
    let wheels = folder.path().join("wheels");
    done(
        Command::new(python.with_file_name("maturin"))
            .current_dir(root.join("python"))
            .args(["build", "--profile", "dev", "--compatibility", "linux", "--interpreter"])
            .arg(&python)
            .arg("--out")
            .arg(&wheels),
    );
    let wheel = std::fs::read_dir(&wheels).unwrap().next().unwrap().unwrap().path();
    let name = wheel.file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.starts_with("stencilc-") && name.contains("-cp39-abi3-"), "one wheel for all of Python: {name}");
    done(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--no-deps"]).arg(&wheel));
    let told = done(
        Command::new(&python)
            .current_dir(root.join("python"))
            .args(["-m", "pytest", "-rs", "-p", "no:cacheprovider", "tests"])
            .env("PYTHONDONTWRITEBYTECODE", "1"),
    );
    println!("{told}");
    // As `./test` counts them.
    for reason in told.lines().filter(|line| line.starts_with("SKIPPED")) {
        println!("skipped: {}", reason.rsplit(": ").next().unwrap_or(reason));
    }
}
