//! Memory that there is not: sizes are judged before anything is held, and whatever fails all the same is an error. The program
//! runs under `ulimit -v`, which also shows how much it takes: what took more would fail.
#![cfg(target_os = "linux")]

use crate::common::process::{PROGRAM, shell};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

/// A call with so many KiB of addresses.
fn limited(folder: &Path, kib: u64, call: &str) -> Output {
    shell(folder, 120, &format!("ulimit -v {kib}; exec {PROGRAM} {call}")).output().unwrap()
}

/// What it says, and its status, which it chose itself.
#[track_caller]
fn ended(folder: &Path, kib: u64, call: &str) -> (i32, String) {
    let output = limited(folder, kib, call);
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let status = output.status.code().filter(|status| *status <= 3);
    let Some(status) = status else { panic!("{call}, {kib} KiB: {:?}\n{said}", output.status) };
    let is_told = status == 0 || said.contains("error");
    assert!(is_told && !said.contains("panicked"), "{call}, {kib} KiB: {status}\n{said}");
    (status, said)
}

/// Enough for every call that succeeds here.
const ENOUGH: u64 = 2_000_000;

/// The KiB with which the program itself is loaded.
fn least(folder: &Path) -> u64 {
    let loads = |kib: &u64| limited(folder, *kib, "--version").status.success();
    (1..500).map(|n| n * 2000).find(loads).unwrap()
}

#[test]
fn every_call_ends_with_any_memory() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for made in ["mesh make hexahedra --size 12x12x12 -o m.npz", "grid make quadtree --size 40x40 -o g.npz"] {
        assert_eq!(ended(folder, ENOUGH, made).0, 0);
    }
    let msh = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mesh_files/cube_4_binary.msh");
    let calls = [
        "check laplap",
        "explain laplap",
        "run laplap --grid 128x128x32 --device cpu --out res=res.npy --plot res=res.png",
        "run laplap --grid g.npz --levels 40 --device cpu",
        "run heat --program heat_periodic --grid 256x256x8 --draw --device cpu --set steps=2 --checkpoint c.npz",
        "run hexahedral8 --stencil volume --mesh m.npz --device cpu",
        "verify laplap --grid 64x64x16 --device cpu --precision f32",
        "mesh make triangles --size 200x200 -o t.npz",
        "mesh reorder m.npz --method rcm --set cell -o r.npz",
        &format!("mesh convert {} -o v.npz", msh.display()),
        "grid make emulated --size 500x500 -o e.npz",
        "grid info laplap --grid g.npz",
    ];
    let least = least(folder);
    for call in calls {
        for more in [0, 1_000, 2_000, 4_000, 8_000, 16_000, 40_000, 100_000] {
            ended(folder, least + more, call);
        }
        let (status, said) = ended(folder, ENOUGH, call);
        assert_eq!(status, 0, "{call}: {said}");
    }
    // Of many threads as many are started as there is room for.
    let run = format!("RAYON_NUM_THREADS=500 exec {PROGRAM} run laplap --grid 64x64x4 --device cpu");
    let script = format!("ulimit -v {}; {run}", least + 200_000);
    let output = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_end_is_told_as_json_too() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let least = least(folder);
    let mut told = 0;
    for more in [4_000, 8_000, 16_000, 24_000, 32_000] {
        let output = limited(folder, least + more, "--json mesh make triangles --size 300x300 -o t.npz");
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        if output.status.success() {
            continue;
        }
        assert_eq!((output.status.code(), &said["error"]["status"]), (Some(1), &1.into()), "{said}");
        told += usize::from(said["error"]["help"].as_str().is_some_and(|help| !help.is_empty()));
    }
    assert!(told > 0, "with so little memory no such mesh is made");
}

/// A `.npy` file's header.
fn header(element: &str, shape: &str) -> Vec<u8> {
    let text = format!("{{'descr': '{element}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

/// An archive of arrays: name, header, and how many bytes of zeros follow, which are packed into a thousandth.
fn archive(path: &Path, arrays: &[(&str, Vec<u8>, usize)]) {
    let mut archive = ZipWriter::new(File::create(path).unwrap());
    for (name, header, zeros) in arrays {
        archive.start_file(format!("{name}.npy"), SimpleFileOptions::default()).unwrap();
        archive.write_all(header).unwrap();
        let chunk = vec![0; 1 << 20];
        for start in (0..*zeros).step_by(chunk.len()) {
            archive.write_all(&chunk[..chunk.len().min(zeros - start)]).unwrap();
        }
    }
    archive.finish().unwrap();
}

/// KiB that are enough for everything but what headers claim.
const SOME: u64 = 600_000;

/// That a call is refused under [`SOME`], and says so.
#[track_caller]
fn refused(folder: &Path, call: &str, wanted: &str) {
    let (status, said) = ended(folder, SOME, call);
    assert!(status == 1 && said.contains(wanted), "{call}: {status}\n{said}");
}

#[test]
fn archives_are_judged_by_their_headers() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let cells = 30_000_000;
    let list = |name| (name, header("|u1", &format!("({cells},)")), cells);
    archive(&folder.join("g.npz"), &["left", "right", "top", "bottom"].map(list));
    assert!(fs::metadata(folder.join("g.npz")).unwrap().len() < 1 << 20);
    refused(folder, "run laplap --grid g.npz --levels 1 --device cpu", "a grid of 30000000 cells takes");
    refused(folder, "grid info laplap --grid g.npz", "a grid of 30000000 cells takes");
    // More than there can be is refused by the header alone, whatever there is.
    archive(&folder.join("h.npz"), &[("left", header("|u1", "(1073741825,)"), 1 << 20)]);
    let (status, said) = ended(folder, ENOUGH, "grid info laplap --grid h.npz");
    assert!(status == 1 && said.contains("at most 2^30 are possible"), "{said}");

    let nodes = ("set node", [header("<i8", "()"), 1_000_000_i64.to_le_bytes().to_vec()].concat(), 0);
    let map = ("cell.nodes -> node", header("|u1", "(15000000, 4)"), 60_000_000);
    archive(&folder.join("m.npz"), &[nodes, map]);
    for call in
        ["mesh info m.npz", "mesh reorder m.npz --method rcm --set cell -o r.npz", "mesh convert m.npz -o v.npz"]
    {
        refused(folder, call, "the 60000001 numbers of its arrays take");
    }
    // A file of less than a kilobyte.
    let nodes = ("set node", [header("<i8", "()"), 1_000_000_000_i64.to_le_bytes().to_vec()].concat(), 0);
    archive(&folder.join("s.npz"), &[nodes]);
    refused(folder, "mesh info s.npz", "1000000000 nodes among them");
}

#[test]
fn arrays_are_judged_by_their_headers() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Bytes that become integers of four, in a file that takes no room on the disk.
    let bytes = header("|u1", "(10, 4000, 4000)");
    let mut file = File::create(folder.join("a.npy")).unwrap();
    file.write_all(&bytes).unwrap();
    file.set_len(bytes.len() as u64 + 160_000_000).unwrap();
    refused(folder, "run laplap --in phi=a.npy --cast --device cpu", "the numbers of the array take 610.4 MiB");
    fs::write(folder.join("b.npy"), header("<f8", "(1000000, 1000000, 1000)")).unwrap();
    refused(folder, "run laplap --in phi=b.npy --device cpu", "cut short");
}

#[test]
fn checkpoints_are_judged_by_their_headers() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let run = "run heat --program heat_periodic --grid 16x16x1 --draw --set steps=2 --device cpu";
    assert_eq!(ended(folder, ENOUGH, &format!("{run} --checkpoint c.npz")).0, 0);
    let mut about = String::new();
    let mut whole = ZipArchive::new(File::open(folder.join("c.npz")).unwrap()).unwrap();
    whole.by_name("about.json").unwrap().read_to_string(&mut about).unwrap();
    let mut archive = ZipWriter::new(File::create(folder.join("d.npz")).unwrap());
    let options = SimpleFileOptions::default();
    archive.start_file("about.json", options).unwrap();
    archive.write_all(about.as_bytes()).unwrap();
    archive.start_file("t.npy", options).unwrap();
    archive.write_all(&header("|u1", "(160000000,)")).unwrap();
    for _ in 0..160 {
        archive.write_all(&[0; 1_000_000]).unwrap();
    }
    archive.finish().unwrap();
    refused(folder, &format!("{run} --resume d.npz"), "the numbers of the array take 610.4 MiB");
}

#[test]
fn texts_of_meshes_claim_what_they_like() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let many = "1000000000";
    let binary = |section: &str, numbers: &[u64]| {
        let mut bytes = format!("$MeshFormat\n4.1 1 8\n\x01\0\0\0\n$EndMeshFormat\n${section}\n").into_bytes();
        numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        bytes
    };
    let head = |version: &str| format!("$MeshFormat\n{version} 0 8\n$EndMeshFormat\n");
    let files: [(&str, Vec<u8>); 9] = [
        ("a.msh", format!("{}$Nodes\n{many}\n1 0 0 0\n$EndNodes\n", head("2.2")).into()),
        ("b.msh", format!("{}$Elements\n{many}\n1 2 {many} 1 1\n$EndElements\n", head("2.2")).into()),
        ("c.msh", format!("{}$Nodes\n{many} {many} 1 {many}\n2 1 0 {many}\n1\n$EndNodes\n", head("4.1")).into()),
        ("d.msh", format!("{}$Elements\n1 {many} 1 {many}\n2 1 2 {many}\n1 1 1 1\n$EndElements\n", head("4.1")).into()),
        ("e.msh", format!("{}$Entities\n{many} 0 0 0\n1 0 0 0 {many}\n$EndEntities\n", head("4.1")).into()),
        ("f.msh", binary("Nodes", &[1 << 60, 1 << 60, 1, 1, 2, 1 << 60, 1 << 60])),
        ("g.msh", binary("Elements", &[1 << 60, 1 << 60, 1, 1, 2, 2, 1 << 60])),
        ("h.dat", format!("{many} {many} {many} {many}\n0 0\n").into()),
        ("i.dat", format!("{0} {0} {0} {0}\n0 0\n", usize::MAX).into()),
    ];
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes).unwrap();
        refused(folder, &format!("mesh info {name}"), &format!("cannot read `{name}`"));
    }
}

#[test]
fn options_that_ask_for_much_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let huge = usize::MAX;
    for call in [
        "grid make emulated --size 20000x20000 -o g.npz",
        "grid make emulated --size 1000000x1000000 -o g.npz",
        "grid make quadtree --size 16384x16384 --depth 0 -o g.npz",
        "mesh make hexahedra --size 900x900x900 -o m.npz",
        "mesh make icosahedral --size R9B12 -o m.npz",
        "run laplap --grid 20000x20000x10 --device cpu",
        "verify laplap --grid 20000x20000x10 --device cpu",
        "bench laplap --grid 20000x20000x10 --device cpu",
        "build laplap --grid 30000x30000x10 --storage uncompressed --emit cuda",
        "run heat --program heat_periodic --grid 20000x20000x10 --draw --device cpu",
        &format!("run laplap --grid {huge}x{huge}x{huge} --device cpu"),
        &format!("explain laplap --grid {huge}x{huge}x{huge}"),
    ] {
        let (status, said) = ended(folder, SOME, call);
        assert!((1..=2).contains(&status), "{call}: {said}");
    }
    // Without a limit the machine is one: nothing is begun that the system would end later.
    let (status, said) = ended(folder, 1 << 40, "run laplap --grid 100000x100000x1000 --device cpu");
    assert!(status == 1 && said.contains("the fields of grid 100000x100000x1000 take 149011.6 GiB"), "{said}");
    assert_eq!(ended(folder, ENOUGH, "mesh make hexahedra --size 4x4x4 -o m.npz").0, 0);
    let (status, said) =
        ended(folder, SOME, &format!("run hexahedral8 --stencil volume --mesh m.npz --levels {huge} --device cpu"));
    assert!(status == 2, "{said}");
}

#[test]
fn no_command_needs_a_large_stack() {
    let folder = tempfile::tempdir().unwrap();
    // As deep as the language allows: 20 functions of 150 calls, and constants of 380 signs on top of each other.
    let functions = (0..20).map(|n| {
        let inner = if n == 0 { "x".to_owned() } else { format!("f{}(x)", n - 1) };
        format!("fn f{n}(x) = {}{inner}{}\n", "abs(".repeat(150), ")".repeat(150))
    });
    let constants = (1..3).map(|n| format!("const c{n} = {}c{}\n", "-".repeat(380), n - 1));
    let text: String = functions.chain(["const c0 = 1\n".into()]).chain(constants).collect();
    let text = format!(
        "{text}stencil s {{ in a; out r; r = f19(a) + c2 }}\n\
         program p {{ in a; out r; r = s(a) }}\n\
         test \"it is\" {{ s {{ a = 1 }}; expect r == 2 }}\n"
    );
    fs::write(folder.path().join("deep.stn"), text).unwrap();
    for call in [
        "check deep.stn",
        "run deep.stn --stencil s --grid 4x4x4 --draw --device cpu",
        "run deep.stn --program p --grid 4x4x4 --draw --device cpu",
        "build deep.stn --stencil s --emit ir",
        "build deep.stn --stencil s --emit cuda",
        "explain deep.stn --stencil s",
        "test deep.stn",
        "verify deep.stn --stencil s --grid 9x9x4 --storage regular --access naive --precision f64 --device emulate",
        "bench deep.stn --stencil s --grid 9x9x4 --storage regular --access naive --runs 1 --device emulate",
        "tune deep.stn --stencil s --grid 9x9x4 --storage regular --access naive --budget 1 --device emulate",
        "snapshot --accept deep.stn",
    ] {
        let output = shell(folder.path(), 120, &format!("ulimit -s 1024; exec {PROGRAM} {call}")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{call}: {:?}\n{said}", output.status);
    }
}
