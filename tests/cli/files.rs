//! The files of a call: what is read is not lost, two outputs are two files, and what others could have written is not executed.

use crate::common::folder::{Folder, text};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

/// A program without halos, which runs on any grid.
const STEPS: &str = "stencil half { in a; in b; out c; out d; c = 0.5 * a; d = 0.5 * b }\n\
                     program halves { inout a; inout b; param steps: int = 3\n\
                     repeat steps { let c, d = half(a, b); a = c; b = d } }\n";

fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("steps.stn"), STEPS).unwrap();
    fs::copy(folder.path("phi.npy"), folder.path("plain")).unwrap();
    folder.done("grid make quadtree --size 6x6 --out g.npz");
    folder.done("mesh make triangles --size 4x4 --out mesh.npz");
    for (target, link) in
        [("g.npz", "link.npz"), ("z.npy", "link.npy"), ("steps.stn", "source.npy"), ("z.npy", "k_2.npy")]
    {
        symlink(target, folder.path(link)).unwrap();
    }
    fs::hard_link(folder.path("steps.stn"), folder.path("hard.npy")).unwrap();
    folder
}

/// Everything in a folder but links, with its bytes.
fn all(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder.path(".")).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.is_file() && !path.is_symlink());
    let mut files: Vec<_> =
        files.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap())).collect();
    files.sort();
    files
}

#[test]
fn no_output_takes_the_place_of_an_input_or_of_another_output() {
    let folder = folder();
    let before = all(&folder);
    let run = "run steps.stn --grid 6x6x1 --device cpu --draw";
    let transcript = folder.transcript(&[
        // What is read.
        "run steps.stn --grid g.npz --levels 2 --device cpu --draw --checkpoint g.npz",
        "run steps.stn --grid g.npz --levels 2 --device cpu --draw --checkpoint link.npz",
        "run steps.stn --grid g.npz --levels 2 --device cpu --draw --checkpoint ./g.npz",
        &format!("{run} --out a=source.npy"),
        &format!("{run} --out a=hard.npy"),
        "run laplap --device cpu --in phi=plain --plot res=./plain",
        "mesh convert mesh.npz --out ./mesh.npz",
        "mesh reorder mesh.npz --method random --set cell --out mesh.npz",
        // What is written twice.
        &format!("{run} --out a=z.npy --out b=link.npy"),
        &format!("{run} --out a=k_1.npy --out b=k_{{step}}.npy --every 1"),
        &format!("{run} --out a=k_{{step}}.npy --out b=z.npy --every 1"),
        &format!("{run} --out a=n_{{step}}.npy --out b=n_{{step:03}}.npy --every 1"),
        &format!(
            "{run} --out a=x.npy --checkpoint x.npz --animate b=x.png --plot b=x_{{step}}.png --plot a=x.png --every 1"
        ),
        "bench laplap --grid 12x12x4 --device cpu --runs 2 -o r.csv --csv r.csv",
        // Where there are no steps.
        "run laplap --grid 12x12x4 --device cpu --out res=res_{step}.npy",
        "bench laplap --grid 12x12x4 --device cpu --runs 2 --csv r_{step:02}.csv",
        "bench laplap --grid 12x12x4 --device cpu --runs 2 --csv r_{step:6}.csv",
        &format!("{run} --checkpoint c_{{steps}}.npz"),
        // Where folders would have to be there.
        &format!("{run} --out a=e_{{step}}/a.npy --every 2"),
    ]);
    insta::assert_snapshot!(transcript);
    assert!(all(&folder) == before, "nothing was written");
}

#[test]
fn a_run_goes_on_in_its_own_files() {
    let folder = folder();
    let run = "run steps.stn --device cpu --draw";
    // A checkpoint of each step.
    folder
        .done(&format!("{run} --grid 6x6x1 --set steps=4 --every 2 --checkpoint c_{{step:02}}.npz --out a=whole.npy"));
    let names: Vec<String> =
        all(&folder).into_iter().map(|(name, _)| name).filter(|name| name.starts_with("c_")).collect();
    assert_eq!(names, ["c_02.npz", "c_04.npz"]);
    // The last one in its place.
    folder.done(&format!("{run} --set steps=4 --resume c_02.npz --checkpoint c_02.npz --out a=on.npy"));
    assert!(fs::read(folder.path("c_02.npz")).unwrap() == fs::read(folder.path("c_04.npz")).unwrap());
    assert!(fs::read(folder.path("on.npy")).unwrap() == fs::read(folder.path("whole.npy")).unwrap());
    // An array in the place of one, also of a link's target.
    folder.done(&format!("{run} --in a=whole.npy --in b=on.npy --out a=whole.npy"));
    symlink("on.npy", folder.path("on_link.npy")).unwrap();
    folder.done(&format!("{run} --in a=whole.npy --in b=on.npy --out b=on_link.npy"));
    assert!(folder.path("on_link.npy").is_symlink());
    // A link to what is not there yet is followed, too.
    folder.done(&format!("{run} --grid 6x6x1 --out a=link.npy"));
    assert!(folder.path("link.npy").is_symlink() && folder.path("z.npy").is_file());
}

#[test]
fn what_is_written_into_a_folder_follows_no_link() {
    let folder = Folder::new();
    let at = |name: &str| folder.path(name);
    fs::write(at("half.stn"), "stencil half { in a; out b; b = a / 2 }").unwrap();
    fs::write(at("mine"), "mine").unwrap();
    for made in ["made", "half.snap"] {
        fs::create_dir(at(made)).unwrap();
    }
    symlink("../mine", at("made/half.h")).unwrap();
    folder.done("snapshot half.stn --accept -o kept");
    let code = fs::read_dir(at("kept")).unwrap().map(|entry| entry.unwrap().file_name());
    let code = code.map(|name| name.into_string().unwrap()).find(|name| name.ends_with(".cu")).unwrap();
    symlink("../mine", at("half.snap").join(&code)).unwrap();
    for line in ["build half.stn -o made", "snapshot half.stn --accept"] {
        let output = folder.run(line);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains("is a link"), "{line}: {said}");
        assert!(!at("made/half.cu").exists() && !at("half.snap/kernels.txt").exists(), "{line}");
    }
    assert_eq!(fs::read(at("mine")).unwrap(), b"mine");
    // A folder of code that comes along as a link has to be named.
    fs::remove_dir_all(at("half.snap")).unwrap();
    symlink("kept", at("half.snap")).unwrap();
    fs::write(at("half.stn"), "stencil half { in a; out b; b = a / 4 }").unwrap();
    let refused = folder.run("snapshot half.stn --accept");
    assert!(text(&refused.stderr).contains("`half.snap` is a link"), "{}", text(&refused.stderr));
    folder.done("snapshot half.stn --accept -o half.snap");
    // The source is none of the code, whatever it is called.
    fs::write(at("source.cu"), "// STENCILC_ Made by stencilc\nstencil source { in a; out b; b = a }").unwrap();
    let source = fs::read(at("source.cu")).unwrap();
    let output = folder.run("build source.cu -o .");
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("the stencil file is read from there"), "{said}");
    folder.done("snapshot source.cu -o . --accept");
    assert_eq!(fs::read(at("source.cu")).unwrap(), source);
    // A link of the name is there already, wherever it leads.
    symlink("elsewhere", at("fresh.stn")).unwrap();
    assert_eq!(folder.run("new fresh").status.code(), Some(2));
}

#[test]
fn folders_are_looked_at_before_anything_is_computed_and_made_when_something_is_written() {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 12x6 -o m.npz");
    let airfoil = "airfoil --mesh m.npz";
    // Without NVRTC, assembly fails: later than a folder that is none.
    for line in ["build laplap --emit ptx", "build airfoil --stencil update --emit ptx"] {
        assert_eq!(folder.run(&format!("{line} -o made")).status.code(), Some(1), "{line}");
        assert!(!folder.path("made").exists(), "{line}");
        let said = text(&folder.run(&format!("{line} -o two.stn")).stderr);
        assert!(said.contains("`two.stn` is a file"), "{line}: {said}");
    }
    for line in [
        &format!("run {airfoil} --set steps=1 --device emulate"),
        &format!("bench {airfoil} --stencil update --device emulate --runs 1"),
    ] {
        let output = folder.run(&format!("{line} --texts two.stn"));
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains("`two.stn` is a file"), "{line}: {said}");
        let output = folder.run(&format!("{line} --texts two.stn/below"));
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains("cannot make the folder"), "{line}: {said}");
    }
    folder.done("build laplap --emit cuda -o made/below");
    assert!(folder.path("made/below/laplap.cu").exists());
}

#[test]
fn texts_of_all_kernels_that_are_measured_are_kept() {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 12x6 -o m.npz");
    folder.done(
        "bench airfoil --stencil res_calc --mesh m.npz --device emulate --strategy tiled --vectors aos --order hilbert,random \
         --threads 64 --runs 1 --texts texts",
    );
    let files =
        fs::read_dir(folder.path("texts")).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let files: Vec<String> = files.collect();
    for order in ["hilbert", "random"] {
        assert!(files.iter().any(|name| name.contains(&format!("-{order}-64x"))), "{files:?}");
    }
}

/// Whether a call has told of the cache.
fn is_told(said: &str, folder: &str) -> bool {
    said.matches("the cache of kernels is not used").count() == 1
        && said.contains("chmod -R go-w")
        && said.contains(folder)
}

#[test]
fn a_cache_that_others_may_write_to_is_not_used() {
    let folder = Folder::with_own_cache();
    let call = "run laplap --grid 12x12x2 --device emulate --timings";
    let is_cached = || folder.done(call).contains("read from the cache");
    assert!(!is_cached() && is_cached());
    let home = folder.path("home");
    assert_eq!(fs::metadata(&home).unwrap().mode() & 0o777, 0o700);
    for name in ["home", "home/kernels"] {
        let allow = |mode| fs::set_permissions(folder.path(name), fs::Permissions::from_mode(mode)).unwrap();
        allow(0o770);
        let output = folder.run(call);
        let (results, said) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success() && !results.contains("read from the cache"), "{results}");
        assert!(is_told(&said, name), "{said}");
        let doctor = folder.done("doctor");
        assert!(doctor.contains("is not used: others may write to") && doctor.contains("chmod -R go-w"), "{doctor}");
        // What needs no cache says nothing of it.
        assert!(!is_told(&text(&folder.run("check laplap").stderr), name));
        allow(0o700);
    }
    assert!(is_cached());
}

#[test]
fn no_file_hides_a_stencil_that_comes_along() {
    let folder = Folder::new();
    // As a program that was linked in this folder, and a folder for what is built.
    fs::write(folder.path("laplap"), b"\x7fELF\xff").unwrap();
    fs::create_dir(folder.path("hdiff")).unwrap();
    let output = folder.run("check laplap");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("note: `laplap` is the stencil that comes along; `./laplap` names the file"));
    assert_eq!(text(&folder.run("check hdiff").stderr), "");
    // With a slash or a dot it is a file.
    assert!(folder.refused("check ./laplap").contains("`./laplap` is no text in UTF-8"));
    fs::rename(folder.path("laplap"), folder.path("laplap.stn")).unwrap();
    assert!(folder.refused("check laplap.stn").contains("`laplap.stn` is no text in UTF-8"));
    // What does not come along is a file as before.
    fs::write(folder.path("own"), "stencil own { in a; out b; b = a }").unwrap();
    assert_eq!(folder.done("check own"), "own: 1 stencil (own)\n");
}
